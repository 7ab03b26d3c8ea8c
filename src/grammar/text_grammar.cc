#include "grammar/text_grammar.h"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"
#include "grammar/gbnf.h"
#include "grammar/lark.h"
#include "grammar/source_text.h"

namespace paceline {
namespace {

enum class GrammarNotation : uint8_t { gbnf, lark };

// By the first rule or directive.
GrammarNotation notation_of(std::string_view text) {
  SourceText at(text);
  for (;;) {
    at.skip_blanks();
    if (at.peek() == '#' || at.starts_with("//")) at.skip_line();
    if (!at.take('\n') && !at.take('\r')) break;
  }
  if (at.peek() == '%' || at.peek() == '?' || at.peek() == '!') return GrammarNotation::lark;
  constexpr std::string_view kRule = "a rule: GBNF's `root ::= ...` or Lark's `start: ...`";
  at.take_name(kRule);
  at.skip_blanks();
  if (at.starts_with("::=")) return GrammarNotation::gbnf;
  if (at.peek() != ':' && at.peek() != '.' && at.peek() != '[' && at.peek() != '{') {
    at.expected("`::=` (GBNF) or `:` (Lark) after the name of the first rule");
  }
  return GrammarNotation::lark;
}

}  // namespace

RuleId add_grammar_text(std::string_view text, GrammarBuilder& builder) {
  if (text.size() > kMaxGrammarBytes) {
    throw Error(ErrorCode::exhausted, fmt::format("{} bytes, more than the limit of {} KiB",
                                                  text.size(), kMaxGrammarBytes >> 10));
  }
  if (!is_valid_utf8(text)) throw Error(ErrorCode::invalid, "the text is not UTF-8");
  SourceGrammar source(builder);
  const SourceRuleId root = notation_of(text) == GrammarNotation::gbnf ? parse_gbnf(text, source)
                                                                       : parse_lark(text, source);
  return add_source_grammar(source, root, text);
}

Grammar compile_grammar_text(std::string_view text, const GrammarLimits& limits) {
  GrammarBuilder builder(limits);
  const RuleId root = add_grammar_text(text, builder);
  return std::move(builder).finish(root);
}

}  // namespace paceline
