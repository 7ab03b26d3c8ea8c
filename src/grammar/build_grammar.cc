// Turns the expressions of a SourceGrammar into terminals and rules.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "grammar/rule_order.h"
#include "grammar/source_grammar.h"
#include "grammar/source_text.h"
#include "grammar/text_form.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// The end of a terminal is a step of the parser, inside of it only an automaton runs. So what is
// regular becomes one terminal, but no larger than this: a rule that is used in many places would
// be there in as many copies.
constexpr uint32_t kMaxTerminalSize = 2000;
constexpr uint32_t kMaxTerminalDepth = 200;

// An expression that is one regular expression.
struct FoldedExpression {
  RegexId regex = RegexSet::kEmpty;
  uint32_t size = 0;
  uint32_t depth = 0;
};

// Finds the expressions that are regular and not too large. Rules have to be folded before those
// that refer to them.
class ExpressionFolder {
 public:
  explicit ExpressionFolder(SourceGrammar& source)
      : source_(source),
        regexes_(source.regexes()),
        of_rule_(source.rules().size()),
        of_expression_(source.num_expressions()),
        is_known_(source.num_expressions(), false) {}

  void fold_rule(SourceRuleId rule) {
    of_rule_[static_cast<size_t>(rule)] = fold(source_.rule(rule).body);
  }
  const std::optional<FoldedExpression>& rule(SourceRuleId rule) const {
    return of_rule_[static_cast<size_t>(rule)];
  }

  const std::optional<FoldedExpression>& fold(ExpressionId id) {
    const auto index = static_cast<size_t>(id);
    if (!is_known_[index]) {
      is_known_[index] = true;
      of_expression_[index] = folded(source_.expression(id));
    }
    return of_expression_[index];
  }

 private:
  std::optional<FoldedExpression> folded(const SourceExpression& of) {
    if (of.kind == ExpressionKind::regex) return FoldedExpression{of.regex, of.size, 1};
    if (of.kind == ExpressionKind::reference) return rule(of.rule);
    if (of.kind == ExpressionKind::call) return std::nullopt;
    FoldedExpression whole{.size = 1};
    std::vector<RegexId> parts;
    for (const ExpressionId part : of.parts) {
      const std::optional<FoldedExpression>& one = fold(part);
      if (!one) return not_folded(of);
      parts.push_back(one->regex);
      whole.size += one->size;
      whole.depth = std::max(whole.depth, one->depth + 1);
    }
    if (whole.size > kMaxTerminalSize || whole.depth > kMaxTerminalDepth) return not_folded(of);
    whole.regex = combined(of, parts);
    return whole;
  }

  RegexId combined(const SourceExpression& of, const std::vector<RegexId>& parts) {
    switch (of.kind) {
      case ExpressionKind::choice:
        return regexes_.alternation(parts);
      case ExpressionKind::repeat:
        return regexes_.repeat(parts[0], of.min, of.max);
      case ExpressionKind::list:
        return regexes_.concat(parts[0], regexes_.star(regexes_.concat(parts[1], parts[0])));
      case ExpressionKind::intersection:
        return regexes_.intersection(parts);
      case ExpressionKind::complement:
        return regexes_.intersection(regexes_.complement(parts[0]),
                                     regexes_.star(any_character(regexes_, TextForm::utf8)));
      case ExpressionKind::shortest:
        return regexes_.intersection(
            parts[0], regexes_.complement(regexes_.concat(parts[0], regexes_.plus(any_byte()))));
      default:
        return regexes_.concat(parts);
    }
  }

  RegexId any_byte() {
    ByteSet all;
    all.set();
    return regexes_.bytes(all);
  }

  static std::nullopt_t not_folded(const SourceExpression& of) {
    if (of.kind == ExpressionKind::intersection || of.kind == ExpressionKind::complement ||
        of.kind == ExpressionKind::shortest) {
      throw Error(
          ErrorCode::exhausted,
          fmt::format("what &, ~ or lazy apply to is larger than {} states", kMaxTerminalSize));
    }
    return std::nullopt;
  }

  SourceGrammar& source_;
  RegexSet& regexes_;
  std::vector<std::optional<FoldedExpression>> of_rule_;
  std::vector<std::optional<FoldedExpression>> of_expression_;
  std::vector<bool> is_known_;
};

// Makes the automata of the rules that are not folded.
class RuleMaker {
 public:
  RuleMaker(SourceGrammar& source, ExpressionFolder& folder)
      : source_(source),
        folder_(folder),
        builder_(source.builder()),
        made_(source.rules().size()) {}

  RuleId make(SourceRuleId root) {
    const RuleId id = rule_for(root);
    while (!pending_.empty()) {
      const Pending next = pending_.back();
      pending_.pop_back();
      const StateId end = builder_.add_state(next.rule);
      rule_ = next.rule;
      connect(source_.rule(next.source).body, builder_.start(next.rule), end);
      builder_.set_end(end);
    }
    return id;
  }

 private:
  struct Pending {
    SourceRuleId source{};
    RuleId rule{};
  };

  RuleId rule_for(SourceRuleId source) {
    std::optional<RuleId>& made = made_[static_cast<size_t>(source)];
    if (!made) {
      made = builder_.add_rule(source_.rule(source).name);
      pending_.push_back({source, *made});
    }
    return *made;
  }

  StateId add_state() { return builder_.add_state(rule_); }

  // Adds the paths from `from` to `to` that read the expression; every other state is new.
  void connect(ExpressionId id, StateId from, StateId to) {
    if (const auto& whole = folder_.fold(id)) {
      builder_.add_terminal(from, whole->regex, to);
      return;
    }
    const SourceExpression& expression = source_.expression(id);
    switch (expression.kind) {
      case ExpressionKind::reference:
        builder_.add_call(from, rule_for(expression.rule), to);
        break;
      case ExpressionKind::call:
        builder_.add_call(from, expression.made_rule, to);
        break;
      case ExpressionKind::choice:
        connect_choice(expression, from, to);
        break;
      case ExpressionKind::repeat:
        connect_repeat(expression, from, to);
        break;
      case ExpressionKind::list:
        connect_list(expression, from, to);
        break;
      default:
        connect_sequence(expression, from, to);
        break;
    }
  }

  // A run of folded parts is one terminal.
  void connect_sequence(const SourceExpression& sequence, StateId from, StateId to) {
    StateId at = from;
    std::vector<RegexId> run;
    uint32_t size = 0;
    const auto end_run = [&](StateId next) {
      builder_.add_terminal(at, builder_.regexes().concat(run), next);
      run.clear();
      size = 0;
      at = next;
    };
    for (size_t i = 0; i < sequence.parts.size(); ++i) {
      const auto& part = folder_.fold(sequence.parts[i]);
      if (!run.empty() && (!part || size + part->size > kMaxTerminalSize)) end_run(add_state());
      if (part) {
        run.push_back(part->regex);
        size += part->size;
      } else {
        const StateId next = i + 1 == sequence.parts.size() ? to : add_state();
        connect(sequence.parts[i], at, next);
        at = next;
      }
    }
    if (!run.empty()) end_run(to);
  }

  // So are folded alternatives.
  void connect_choice(const SourceExpression& choice, StateId from, StateId to) {
    std::vector<RegexId> together;
    uint32_t size = 0;
    const auto end_together = [&] {
      builder_.add_terminal(from, builder_.regexes().alternation(together), to);
      together.clear();
      size = 0;
    };
    for (const ExpressionId part : choice.parts) {
      const auto& one = folder_.fold(part);
      if (!one) {
        connect(part, from, to);
        continue;
      }
      if (!together.empty() && size + one->size > kMaxTerminalSize) end_together();
      together.push_back(one->regex);
      size += one->size;
    }
    if (!together.empty()) end_together();
  }

  void connect_repeat(const SourceExpression& repeat, StateId from, StateId to) {
    const ExpressionId of = repeat.parts[0];
    if (repeat.max == 1) {
      connect(of, from, to);
      builder_.add_empty(from, to);
    } else if (repeat.max != kUnbounded || repeat.min > 1) {
      builder_.add_call(from, counting_rule(repeat), to);
      if (repeat.min == 0) builder_.add_empty(from, to);
    } else {
      const StateId begin = add_state();
      const StateId end = repeat.min == 0 ? begin : add_state();
      builder_.add_empty(from, begin);
      connect(of, begin, end);
      if (end != begin) builder_.add_empty(end, begin);
      builder_.add_empty(end, to);
    }
  }

  void connect_list(const SourceExpression& list, StateId from, StateId to) {
    const StateId begin = add_state();
    const StateId end = add_state();
    builder_.add_empty(from, begin);
    connect(list.parts[0], begin, end);
    connect(list.parts[1], end, begin);
    builder_.add_empty(end, to);
  }

  // A rule with a counter of its own, which counts the repetitions but the last one.
  RuleId counting_rule(const SourceExpression& repeat) {
    const uint32_t min = std::max(repeat.min, 1U);
    const bool is_bounded = repeat.max != kUnbounded;
    const RuleId rule = builder_.add_rule(fmt::format("{} repetitions", min));
    const RuleId outer = std::exchange(rule_, rule);
    const StateId begin = builder_.start(rule);
    const StateId end = add_state();
    connect(repeat.parts[0], begin, end);
    builder_.add_empty(end, begin,
                       {.count = {0, is_bounded ? repeat.max - 2 : kUnbounded}, .adds = 1});
    builder_.set_end(end, {min - 1, is_bounded ? repeat.max - 1 : kUnbounded});
    rule_ = outer;
    return rule;
  }

  SourceGrammar& source_;
  ExpressionFolder& folder_;
  GrammarBuilder& builder_;
  std::vector<std::optional<RuleId>> made_;
  std::vector<Pending> pending_;
  RuleId rule_{};  // whose states are added
};

}  // namespace

RuleId add_source_grammar(SourceGrammar& source, SourceRuleId root, std::string_view text) {
  const SourceText places(text);
  replace_direct_recursion(source);
  const RuleOrder order = order_rules(source, root);
  ExpressionFolder folder(source);
  for (const SourceRuleId id : order.rules) {
    const SourceRule& rule = source.rule(id);
    if (!order.is_recursive[static_cast<size_t>(id)]) {
      try {
        folder.fold_rule(id);
      } catch (const Error& error) {
        places.fail(error.code(), rule.position, error.what());
      }
    } else if (rule.is_terminal) {
      places.fail(ErrorCode::invalid, rule.position,
                  fmt::format("the terminal {} refers to itself; rules, with names in "
                              "lower case, may",
                              rule.name));
    }
  }
  RuleMaker maker(source, folder);
  return maker.make(root);
}

}  // namespace paceline
