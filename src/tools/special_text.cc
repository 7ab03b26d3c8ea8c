#include "tools/special_text.h"

#include <algorithm>
#include <array>

namespace paceline {
namespace {

constexpr uint8_t kSpecialByte = 0xFF;

// `mark` where any of its bytes may begin a special token.
RegexId with_any_tokens(RegexSet& regexes, std::string_view mark) {
  const RegexId special = regexes.optional(regexes.byte(kSpecialByte));
  std::vector<RegexId> parts;
  for (const char c : mark) {
    parts.push_back(special);
    parts.push_back(regexes.byte(static_cast<uint8_t>(c)));
  }
  return regexes.concat(parts);
}

RegexId blank_byte(RegexSet& regexes) {
  ByteSet blanks;
  for (const char c : std::string_view(" \t\n\r")) blanks.set(static_cast<uint8_t>(c));
  return regexes.bytes(blanks);
}

}  // namespace

SpecialText::SpecialText(std::span<const std::string> special_tokens)
    : special_tokens_(special_tokens.begin(), special_tokens.end()) {
  std::erase_if(special_tokens_, [](const std::string& text) { return text.empty(); });
  std::stable_sort(special_tokens_.begin(), special_tokens_.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string SpecialText::marked(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const auto special =
        std::find_if(special_tokens_.begin(), special_tokens_.end(),
                     [&](const std::string& token) { return text.starts_with(token); });
    const size_t bytes = special == special_tokens_.end() ? 1 : special->size();
    if (special != special_tokens_.end()) out += static_cast<char>(kSpecialByte);
    out += text.substr(0, bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

RegexId text_without(RegexSet& regexes, std::string_view mark) {
  const std::array parts{RegexSet::kAll, with_any_tokens(regexes, mark), RegexSet::kAll};
  return regexes.complement(regexes.concat(parts));
}

RegexId text_beginning_without(RegexSet& regexes, std::string_view mark) {
  const std::array parts{regexes.star(blank_byte(regexes)), with_any_tokens(regexes, mark),
                         RegexSet::kAll};
  return regexes.complement(regexes.concat(parts));
}

RegexId some_blanks(RegexSet& regexes) {
  constexpr uint32_t kMaxBlanks = 8;
  return regexes.repeat(blank_byte(regexes), 0, kMaxBlanks);
}

}  // namespace paceline
