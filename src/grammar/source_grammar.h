// SourceGrammar is a grammar as a notation writes it: rules whose bodies are trees of expressions.
// GBNF and Lark's notation are read to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/regex_set.h"

namespace paceline {

enum class ExpressionId : uint32_t {};
enum class SourceRuleId : uint32_t {};

enum class ExpressionKind : uint8_t {
  regex,
  reference,
  call,  // a rule of the builder
  sequence,
  choice,
  repeat,        // parts[0], `min` to `max` times
  list,          // parts[0], then any number of times parts[1] and parts[0]
  intersection,  // of regular parts, as complement
  complement,    // the UTF-8 texts that parts[0] doesn't match
  shortest,      // of parts[0], the texts that don't begin with a shorter one
};

struct SourceExpression {
  ExpressionKind kind = ExpressionKind::regex;
  RegexId regex = RegexSet::kEmpty;
  uint32_t size = 0;  // of a regex: about the bytes of its states
  SourceRuleId rule{};
  RuleId made_rule{};  // of a call
  uint32_t min = 0;
  uint32_t max = 0;
  uint32_t depth = 1;
  std::vector<ExpressionId> parts;
};

struct SourceRule {
  std::string name;
  size_t position = 0;  // in the text, of the first mention, then of the definition
  bool is_defined = false;
  bool is_terminal = false;  // may not refer to itself
  ExpressionId body{};
};

class SourceGrammar {
 public:
  // `builder` must outlive it.
  explicit SourceGrammar(GrammarBuilder& builder) : builder_(builder) {}

  GrammarBuilder& builder() { return builder_; }
  RegexSet& regexes() { return builder_.regexes(); }
  const std::vector<SourceRule>& rules() const { return rules_; }
  SourceRule& rule(SourceRuleId id) { return rules_[static_cast<size_t>(id)]; }
  const SourceExpression& expression(ExpressionId id) const {
    return expressions_[static_cast<size_t>(id)];
  }
  size_t num_expressions() const { return expressions_.size(); }

  // The rule of this name, which may be defined later.
  SourceRuleId mention(std::string_view name, size_t position);
  void define(SourceRuleId rule, ExpressionId body, size_t position);

  // Error exhausted when a tree gets too deep.
  ExpressionId regex(RegexId regex, size_t size);
  ExpressionId empty() { return regex(RegexSet::kEmpty, 0); }
  ExpressionId reference(SourceRuleId rule);
  ExpressionId call(RuleId made_rule);
  ExpressionId sequence(std::vector<ExpressionId> parts);
  ExpressionId choice(std::vector<ExpressionId> parts);
  ExpressionId repeat(ExpressionId of, uint32_t min, uint32_t max);
  ExpressionId list(ExpressionId item, ExpressionId separator);
  ExpressionId intersection(std::vector<ExpressionId> parts);
  ExpressionId complement(ExpressionId of);
  ExpressionId shortest(ExpressionId of);

 private:
  ExpressionId add(SourceExpression expression);

  GrammarBuilder& builder_;
  std::vector<SourceRule> rules_;
  std::unordered_map<std::string, SourceRuleId> rule_of_name_;
  std::vector<SourceExpression> expressions_;
};

// Rewrites the rules that refer to themselves at the ends of their alternatives only as loops:
// "r: x | r y" is "r: x y*", and "r: x | r op r" is a list. Terminals stay as they are.
void replace_direct_recursion(SourceGrammar& source);

// What the rule `root` matches. What isn't recursive becomes terminals, as few as possible. Errors
// name the place of a rule in `text`.
RuleId add_source_grammar(SourceGrammar& source, SourceRuleId root, std::string_view text);

}  // namespace paceline
