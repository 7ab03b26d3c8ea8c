#include "grammar/rule_order.h"

#include <algorithm>
#include <cstdint>

namespace paceline {
namespace {

// Strongly connected components by Tarjan's algorithm ("Depth-first search and linear graph
// algorithms", 1972), with a stack of its own: a chain of rules may be long.
class ComponentSearch {
 public:
  ComponentSearch(const SourceGrammar& source, RuleOrder& order)
      : source_(source), order_(order), nodes_(source.rules().size()) {
    order_.is_recursive.assign(source.rules().size(), false);
  }

  void search(size_t root) {
    enter(root);
    while (!path_.empty()) {
      Step& step = path_.back();
      if (step.next < step.references.size()) {
        const size_t rule = step.rule;
        const size_t reference = step.references[step.next++];
        if (reference == rule) order_.is_recursive[rule] = true;
        if (nodes_[reference].index == 0) {
          enter(reference);
        } else if (nodes_[reference].is_open) {
          nodes_[rule].lowest = std::min(nodes_[rule].lowest, nodes_[reference].index);
        }
      } else {
        leave();
      }
    }
  }

 private:
  struct Node {
    uint32_t index = 0;  // 0: not seen
    uint32_t lowest = 0;
    bool is_open = false;
  };
  struct Step {
    size_t rule = 0;
    std::vector<size_t> references;
    size_t next = 0;
  };

  void enter(size_t rule) {
    nodes_[rule] = {.index = ++num_seen_, .lowest = num_seen_, .is_open = true};
    open_.push_back(rule);
    path_.push_back({.rule = rule, .references = references_of(rule)});
  }

  void leave() {
    const size_t rule = path_.back().rule;
    path_.pop_back();
    if (!path_.empty()) {
      uint32_t& lowest = nodes_[path_.back().rule].lowest;
      lowest = std::min(lowest, nodes_[rule].lowest);
    }
    if (nodes_[rule].lowest != nodes_[rule].index) return;
    const bool is_alone = open_.back() == rule;
    while (nodes_[rule].is_open) {
      const size_t member = open_.back();
      open_.pop_back();
      nodes_[member].is_open = false;
      if (!is_alone) order_.is_recursive[member] = true;
      order_.rules.push_back(static_cast<SourceRuleId>(member));
    }
  }

  std::vector<size_t> references_of(size_t rule) const {
    std::vector<size_t> references;
    std::vector<ExpressionId> pending{source_.rules()[rule].body};
    while (!pending.empty()) {
      const SourceExpression& expression = source_.expression(pending.back());
      pending.pop_back();
      if (expression.kind == ExpressionKind::reference) {
        references.push_back(static_cast<size_t>(expression.rule));
      }
      pending.insert(pending.end(), expression.parts.begin(), expression.parts.end());
    }
    std::sort(references.begin(), references.end());
    references.erase(std::unique(references.begin(), references.end()), references.end());
    return references;
  }

  const SourceGrammar& source_;
  RuleOrder& order_;
  std::vector<Node> nodes_;
  std::vector<size_t> open_;
  std::vector<Step> path_;
  uint32_t num_seen_ = 0;
};

}  // namespace

RuleOrder order_rules(const SourceGrammar& source, SourceRuleId root) {
  RuleOrder order;
  ComponentSearch(source, order).search(static_cast<size_t>(root));
  return order;
}

}  // namespace paceline
