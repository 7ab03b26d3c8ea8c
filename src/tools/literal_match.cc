#include "tools/literal_match.h"

#include "tools/text_units.h"

namespace paceline {

LiteralMatch match_literal(std::string_view text, std::string_view literal, bool is_final) {
  using State = LiteralMatch::State;
  const LiteralMatch undecided{is_final ? State::mismatch : State::partial};
  const std::string_view core = trimmed_right(literal);
  size_t at = 0;
  for (const char c : core) {
    if (is_blank(c)) continue;
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) return undecided;
    if (text[at++] != c) return {};
  }
  for (const char c : literal.substr(core.size())) {
    if (at == text.size()) return is_final ? LiteralMatch{State::matched, at} : undecided;
    if (text[at] != c) break;
    ++at;
  }
  return {State::matched, at};
}

}  // namespace paceline
