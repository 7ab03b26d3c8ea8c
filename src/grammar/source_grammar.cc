#include "grammar/source_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

// 64 levels of groups, each a choice of sequences of repetitions of several kinds.
constexpr uint32_t kMaxExpressionDepth = 400;

}  // namespace

SourceRuleId SourceGrammar::mention(std::string_view name, size_t position) {
  const auto [entry, is_new] =
      rule_of_name_.try_emplace(std::string(name), static_cast<SourceRuleId>(rules_.size()));
  if (is_new) rules_.push_back({.name = std::string(name), .position = position});
  return entry->second;
}

void SourceGrammar::define(SourceRuleId rule, ExpressionId body, size_t position) {
  SourceRule& defined = this->rule(rule);
  defined.is_defined = true;
  defined.body = body;
  defined.position = position;
}

ExpressionId SourceGrammar::add(SourceExpression expression) {
  for (const ExpressionId part : expression.parts) {
    expression.depth = std::max(expression.depth, this->expression(part).depth + 1);
  }
  if (expression.depth > kMaxExpressionDepth) {
    throw Error(
        ErrorCode::exhausted,
        fmt::format("an expression is nested deeper than {} operators", kMaxExpressionDepth));
  }
  expressions_.push_back(std::move(expression));
  return static_cast<ExpressionId>(expressions_.size() - 1);
}

ExpressionId SourceGrammar::regex(RegexId regex, size_t size) {
  return add({.regex = regex, .size = static_cast<uint32_t>(size)});
}

ExpressionId SourceGrammar::reference(SourceRuleId rule) {
  return add({.kind = ExpressionKind::reference, .rule = rule});
}

ExpressionId SourceGrammar::call(RuleId made_rule) {
  return add({.kind = ExpressionKind::call, .made_rule = made_rule});
}

ExpressionId SourceGrammar::sequence(std::vector<ExpressionId> parts) {
  if (parts.empty()) return empty();
  if (parts.size() == 1) return parts[0];
  return add({.kind = ExpressionKind::sequence, .parts = std::move(parts)});
}

ExpressionId SourceGrammar::choice(std::vector<ExpressionId> parts) {
  if (parts.empty()) return regex(RegexSet::kNothing, 0);
  if (parts.size() == 1) return parts[0];
  return add({.kind = ExpressionKind::choice, .parts = std::move(parts)});
}

ExpressionId SourceGrammar::repeat(ExpressionId of, uint32_t min, uint32_t max) {
  if (max == 0) return empty();
  if (min == 1 && max == 1) return of;
  return add({.kind = ExpressionKind::repeat, .min = min, .max = max, .parts = {of}});
}

ExpressionId SourceGrammar::list(ExpressionId item, ExpressionId separator) {
  return add({.kind = ExpressionKind::list, .parts = {item, separator}});
}

ExpressionId SourceGrammar::intersection(std::vector<ExpressionId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = ExpressionKind::intersection, .parts = std::move(parts)});
}

ExpressionId SourceGrammar::complement(ExpressionId of) {
  return add({.kind = ExpressionKind::complement, .parts = {of}});
}

ExpressionId SourceGrammar::shortest(ExpressionId of) {
  return add({.kind = ExpressionKind::shortest, .parts = {of}});
}

}  // namespace paceline
