#include "grammar/constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "grammar/json_schema.h"
#include "grammar/pattern.h"
#include "grammar/text_grammar.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// Texts as one expression that shares their beginnings; made from a sorted list, as a trie whose
// last branch is open (Daciuk et al., "Incremental construction of minimal acyclic finite-state
// automata", 2000).
class TextTrie {
 public:
  explicit TextTrie(RegexSet& regexes) : regexes_(regexes), open_(1) {}

  // Not before an earlier text.
  void add(std::string_view text) {
    const auto [end, other] = std::mismatch(last_.begin(), last_.end(), text.begin(), text.end());
    close_to(static_cast<size_t>(end - last_.begin()));
    open_.resize(text.size() + 1);
    open_.back().push_back(RegexSet::kEmpty);
    last_ = text;
  }

  RegexId finish() && {
    close_to(0);
    return regexes_.alternation(open_[0]);
  }

 private:
  void close_to(size_t depth) {
    while (open_.size() > depth + 1) {
      const RegexId tail = regexes_.alternation(open_.back());
      open_.pop_back();
      const RegexId head = regexes_.byte(static_cast<uint8_t>(last_[open_.size() - 1]));
      open_.back().push_back(regexes_.concat(head, tail));
    }
  }

  RegexSet& regexes_;
  std::vector<std::vector<RegexId>> open_;  // by depth: what may follow
  std::string_view last_;
};

// A rule that is one terminal.
RuleId add_text(RegexId regex, GrammarBuilder& builder) {
  const RuleId rule = builder.add_rule("text");
  const StateId end = builder.add_state(rule);
  builder.add_terminal(builder.start(rule), regex, end);
  builder.set_end(end);
  return rule;
}

RuleId add_choice(std::vector<std::string> choices, GrammarBuilder& builder) {
  if (choices.empty()) {
    throw Error(ErrorCode::invalid, "an empty list, expected at least one text");
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!is_valid_utf8(choices[i])) {
      throw Error(ErrorCode::invalid, fmt::format("choice {}: the text is not UTF-8", i));
    }
  }
  std::sort(choices.begin(), choices.end());
  TextTrie trie(builder.regexes());
  for (const std::string& choice : choices) trie.add(choice);
  return add_text(std::move(trie).finish(), builder);
}

SchemaRigor rigor_of(const ConstraintSpec& spec) {
  if (spec.strict) return SchemaRigor::strict;
  return spec.best_effort ? SchemaRigor::best_effort : SchemaRigor::exact;
}

}  // namespace

RuleId add_constraint(const ConstraintSpec& spec, GrammarBuilder& builder) {
  switch (spec.kind) {
    case ConstraintSpec::Kind::json_schema:
      return add_json_schema(spec.text, builder, rigor_of(spec));
    case ConstraintSpec::Kind::regex:
      return add_text(
          parse_pattern(builder.regexes(), spec.text, TextForm::utf8, PatternMatch::whole),
          builder);
    case ConstraintSpec::Kind::grammar:
      return add_grammar_text(spec.text, builder);
    case ConstraintSpec::Kind::choice:
      return add_choice(spec.choices, builder);
    case ConstraintSpec::Kind::json_object:
      break;
  }
  return add_any_json_object(builder);
}

Grammar compile_constraint(const ConstraintSpec& spec, const GrammarLimits& limits,
                           JsonTexts texts) {
  const auto compile = [&](const ConstraintSpec& one) {
    GrammarBuilder builder(limits, texts);
    const RuleId rule = add_constraint(one, builder);
    return std::move(builder).finish(rule);
  };
  const bool is_best_effort =
      spec.kind == ConstraintSpec::Kind::json_schema && rigor_of(spec) == SchemaRigor::best_effort;
  if (!is_best_effort) return compile(spec);
  std::vector<std::string> schemas{spec.text};
  for (std::string& wider : wider_schemas(spec.text)) schemas.push_back(std::move(wider));
  return compile_within_limits(schemas.size() - 1, [&](size_t widening) {
    ConstraintSpec one = spec;
    one.text = schemas[widening];
    return compile(one);
  });
}

Grammar compile_within_limits(size_t most, const std::function<Grammar(size_t)>& compile) {
  std::string problem;
  for (size_t widening = 0;; ++widening) {
    try {
      Grammar grammar = compile(widening);
      if (widening > 0) grammar.warnings.push_back(problem + "; so less of it is enforced");
      return grammar;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::exhausted || widening == most) throw;
      if (widening == 0) problem = error.what();
    }
  }
}

}  // namespace paceline
