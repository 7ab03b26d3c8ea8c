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

// A grammar that is one terminal.
Grammar grammar_of(RegexId regex, GrammarBuilder&& builder) {
  const RuleId root = builder.add_rule("text");
  const StateId end = builder.add_state(root);
  builder.add_terminal(builder.start(root), regex, end);
  builder.set_end(end);
  return std::move(builder).finish(root);
}

Grammar compile_regex(std::string_view pattern, const GrammarLimits& limits) {
  GrammarBuilder builder(limits);
  const RegexId regex =
      parse_pattern(builder.regexes(), pattern, TextForm::utf8, PatternMatch::whole);
  return grammar_of(regex, std::move(builder));
}

Grammar compile_choice(std::vector<std::string> choices, const GrammarLimits& limits) {
  if (choices.empty()) {
    throw Error(ErrorCode::invalid, "choice: an empty list, expected at least one text");
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!is_valid_utf8(choices[i])) {
      throw Error(ErrorCode::invalid, fmt::format("choice[{}]: the text is not UTF-8", i));
    }
  }
  std::sort(choices.begin(), choices.end());
  GrammarBuilder builder(limits);
  TextTrie trie(builder.regexes());
  for (const std::string& choice : choices) trie.add(choice);
  return grammar_of(std::move(trie).finish(), std::move(builder));
}

}  // namespace

Grammar compile_constraint(const ConstraintSpec& spec, const GrammarLimits& limits) {
  switch (spec.kind) {
    case ConstraintSpec::Kind::json_schema:
      return compile_json_schema(spec.text, {.strict = spec.strict, .limits = limits});
    case ConstraintSpec::Kind::regex:
      return compile_regex(spec.text, limits);
    case ConstraintSpec::Kind::grammar:
      return compile_grammar_text(spec.text, limits);
    case ConstraintSpec::Kind::choice:
      return compile_choice(spec.choices, limits);
    case ConstraintSpec::Kind::json_object:
      break;
  }
  return any_json_object(limits);
}

}  // namespace paceline
