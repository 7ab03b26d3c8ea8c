// Replaces direct recursion at the ends of alternatives with loops.
#include <utility>
#include <vector>

#include "grammar/source_grammar.h"

namespace paceline {
namespace {

// The alternatives of a rule r, by where r stands in them. For languages, r is
//   x (between x)*  with  x = before* base after*
// because putting texts one after another is associative. What stands inside may refer to r too.
struct RecursiveAlternatives {
  std::vector<ExpressionId> base;
  std::vector<ExpressionId> before;   // of "before r"
  std::vector<ExpressionId> after;    // of "r after"
  std::vector<ExpressionId> between;  // of "r between r"
};

class RuleRewriter {
 public:
  RuleRewriter(SourceGrammar& source, SourceRuleId rule) : source_(source), rule_(rule) {}

  void rewrite() {
    std::vector<ExpressionId> alternatives;
    collect_alternatives(source_.rule(rule_).body, alternatives);
    for (const ExpressionId alternative : alternatives) sort_in(alternative);
    if (!is_recursive_) return;
    std::vector<ExpressionId> item;
    if (!sorted_.before.empty()) item.push_back(any_number(std::move(sorted_.before)));
    item.push_back(source_.choice(std::move(sorted_.base)));
    if (!sorted_.after.empty()) item.push_back(any_number(std::move(sorted_.after)));
    ExpressionId body = source_.sequence(std::move(item));
    if (!sorted_.between.empty()) {
      body = source_.list(body, source_.choice(std::move(sorted_.between)));
    }
    source_.rule(rule_).body = body;
  }

 private:
  void collect_alternatives(ExpressionId id, std::vector<ExpressionId>& alternatives) {
    const SourceExpression& expression = source_.expression(id);
    if (expression.kind == ExpressionKind::choice) {
      for (size_t i = 0; i < source_.expression(id).parts.size(); ++i) {
        collect_alternatives(source_.expression(id).parts[i], alternatives);
      }
    } else if (expression.kind == ExpressionKind::repeat && expression.min == 0 &&
               expression.max == 1) {
      collect_alternatives(expression.parts[0], alternatives);
      alternatives.push_back(source_.empty());
    } else {
      alternatives.push_back(id);
    }
  }

  void collect_parts(ExpressionId id, std::vector<ExpressionId>& parts) {
    const SourceExpression& expression = source_.expression(id);
    if (expression.kind != ExpressionKind::sequence) {
      parts.push_back(id);
      return;
    }
    for (const ExpressionId part : expression.parts) collect_parts(part, parts);
  }

  bool is_rule(ExpressionId id) const {
    const SourceExpression& expression = source_.expression(id);
    return expression.kind == ExpressionKind::reference && expression.rule == rule_;
  }

  void sort_in(ExpressionId alternative) {
    std::vector<ExpressionId> parts;
    collect_parts(alternative, parts);
    const bool begins = is_rule(parts.front());
    const bool ends = is_rule(parts.back());
    if (!begins && !ends) {
      sorted_.base.push_back(alternative);
      return;
    }
    is_recursive_ = true;
    if (parts.size() == 1) return;  // r: r adds no text
    if (begins) parts.erase(parts.begin());
    if (ends) parts.pop_back();
    std::vector<ExpressionId>& where =
        begins && ends ? sorted_.between : (begins ? sorted_.after : sorted_.before);
    where.push_back(source_.sequence(std::move(parts)));
  }

  ExpressionId any_number(std::vector<ExpressionId> options) {
    return source_.repeat(source_.choice(std::move(options)), 0, kUnbounded);
  }

  SourceGrammar& source_;
  SourceRuleId rule_;
  RecursiveAlternatives sorted_;
  bool is_recursive_ = false;
};

}  // namespace

void replace_direct_recursion(SourceGrammar& source) {
  for (size_t i = 0; i < source.rules().size(); ++i) {
    const SourceRule& rule = source.rules()[i];
    if (rule.is_defined && !rule.is_terminal) {
      RuleRewriter(source, static_cast<SourceRuleId>(i)).rewrite();
    }
  }
}

}  // namespace paceline
