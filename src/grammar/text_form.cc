#include "grammar/text_form.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/utf8.h"

namespace paceline {

namespace {

constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;
constexpr char32_t kFirstSupplementary = 0x10000;

// A byte that stands for some bits of a number.
struct CodePlace {
  uint32_t bits = 0;
  uint32_t base = 0;  // what is added to these bits
  enum class Writes : uint8_t { byte, hex_digit } writes = Writes::byte;
  RegexId before = RegexSet::kEmpty;  // what stands before the byte
};

ByteSet code_place_bytes(const CodePlace& place, uint32_t symbol) {
  const uint32_t value = place.base + symbol;
  ByteSet bytes;
  if (place.writes == CodePlace::Writes::byte) {
    bytes.set(value);
  } else {
    bytes.set(static_cast<uint8_t>("0123456789abcdef"[value]));
    bytes.set(static_cast<uint8_t>("0123456789ABCDEF"[value]));
  }
  return bytes;
}

// The expression of a set of numbers, each written as the bytes of `places`, highest bits first.
class NumberTrie {
 public:
  NumberTrie(RegexSet& regexes, std::vector<CodePlace> places)
      : regexes_(regexes), places_(std::move(places)), all_from_(places_.size() + 1) {
    all_from_.back() = RegexSet::kEmpty;
    for (size_t place = places_.size() - 1; place > 0; --place) {
      ByteSet bytes;
      for (uint32_t symbol = 0; symbol < 1U << places_[place].bits; ++symbol) {
        bytes |= code_place_bytes(places_[place], symbol);
      }
      all_from_[place] = branch(place, bytes, all_from_[place + 1]);
    }
  }

  RegexId matching(const CodePointRanges& ranges) {
    return ranges.empty() ? RegexSet::kNothing : within(ranges, 0, 0);
  }

 private:
  RegexId branch(size_t place, const ByteSet& bytes, RegexId tail) {
    return regexes_.concat(places_[place].before, regexes_.concat(regexes_.bytes(bytes), tail));
  }

  // The numbers of `ranges` that begin as `begin` does, from the byte `place` on.
  RegexId within(std::span<const std::pair<char32_t, char32_t>> ranges, char32_t begin,
                 size_t place) {
    uint32_t low_bits = 0;
    for (size_t i = place + 1; i < places_.size(); ++i) low_bits += places_[i].bits;
    std::vector<std::pair<RegexId, ByteSet>> branches;  // by tail
    for (uint32_t symbol = 0; symbol < 1U << places_[place].bits; ++symbol) {
      const char32_t first = begin + (symbol << low_bits);
      const char32_t last = first + (1U << low_bits) - 1;
      while (!ranges.empty() && ranges.front().second < first) ranges = ranges.subspan(1);
      if (ranges.empty()) break;
      if (ranges.front().first > last) continue;
      const bool is_whole = ranges.front().first <= first && ranges.front().second >= last;
      const RegexId tail = is_whole ? all_from_[place + 1] : within(ranges, first, place + 1);
      auto found = std::find_if(branches.begin(), branches.end(),
                                [&](const auto& branch) { return branch.first == tail; });
      if (found == branches.end()) found = branches.insert(found, {tail, {}});
      found->second |= code_place_bytes(places_[place], symbol);
    }
    std::vector<RegexId> options;
    for (const auto& [tail, bytes] : branches) options.push_back(branch(place, bytes, tail));
    return regexes_.alternation(options);
  }

  RegexSet& regexes_;
  std::vector<CodePlace> places_;
  std::vector<RegexId> all_from_;  // every way to write the places from this one on, but 0
};

CodePointRanges without_surrogates(const CodePointRanges& ranges) {
  CodePointRanges kept = clipped_ranges(ranges, 0, kFirstSurrogate - 1);
  const CodePointRanges above = clipped_ranges(ranges, kLastSurrogate + 1, kLastCodePoint);
  kept.insert(kept.end(), above.begin(), above.end());
  return kept;
}

// The characters above ASCII as UTF-8 (RFC 3629).
RegexId multibyte_characters(RegexSet& regexes, const CodePointRanges& ranges) {
  const CodePlace tail{.bits = 6, .base = 0x80};
  NumberTrie two(regexes, {{.bits = 5, .base = 0xC0}, tail});
  NumberTrie three(regexes, {{.bits = 4, .base = 0xE0}, tail, tail});
  NumberTrie four(regexes, {{.bits = 3, .base = 0xF0}, tail, tail, tail});
  return regexes.alternation(
      std::array{two.matching(clipped_ranges(ranges, 0x80, 0x7FF)),
                 three.matching(clipped_ranges(ranges, 0x800, kFirstSupplementary - 1)),
                 four.matching(clipped_ranges(ranges, kFirstSupplementary, kLastCodePoint))});
}

// What stands behind \u: four hexadecimal digits, or eight and another \u (RFC 8259, section 7).
RegexId hexadecimal_characters(RegexSet& regexes, const CodePointRanges& ranges) {
  constexpr auto kHex = CodePlace::Writes::hex_digit;
  const CodePlace digit{.bits = 4, .writes = kHex};
  CodePointRanges basic = clipped_ranges(ranges, 0, 0x1F);
  const CodePointRanges above = clipped_ranges(ranges, 0x7F, kFirstSupplementary - 1);
  basic.insert(basic.end(), above.begin(), above.end());
  CodePointRanges supplementary = clipped_ranges(ranges, kFirstSupplementary, kLastCodePoint);
  for (auto& [first, last] : supplementary) {
    first -= kFirstSupplementary;
    last -= kFirstSupplementary;
  }
  ByteSet letter_d;
  letter_d.set('d').set('D');
  const RegexId d = regexes.bytes(letter_d);
  const CodePlace high{.bits = 2, .base = 0x8, .writes = kHex, .before = d};
  const CodePlace low{
      .bits = 2, .base = 0xC, .writes = kHex, .before = regexes.concat(regexes.literal("\\u"), d)};
  NumberTrie unit(regexes, {digit, digit, digit, digit});
  NumberTrie pair(regexes, {high, digit, digit, low, digit, digit});
  return regexes.alternation(unit.matching(basic), pair.matching(supplementary));
}

bool is_in(const CodePointRanges& ranges, char32_t c) {
  return !clipped_ranges(ranges, c, c).empty();
}

RegexId one_of_json_characters(RegexSet& regexes, const CodePointRanges& ranges) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kShort = "\"\\bfnrt";
  ByteSet itself;
  for (const auto& [first, last] : clipped_ranges(ranges, 0x20, 0x7F)) {
    for (char32_t c = first; c <= last; ++c) itself.set(c, c != '"' && c != '\\');
  }
  ByteSet escapes;
  for (size_t i = 0; i < kEscaped.size(); ++i) {
    if (is_in(ranges, static_cast<char32_t>(kEscaped[i])))
      escapes.set(static_cast<uint8_t>(kShort[i]));
  }
  const RegexId hexadecimal = hexadecimal_characters(regexes, ranges);
  const RegexId escaped =
      regexes.alternation(regexes.bytes(escapes), regexes.concat(regexes.byte('u'), hexadecimal));
  return regexes.alternation(std::array{regexes.bytes(itself),
                                        regexes.concat(regexes.byte('\\'), escaped),
                                        multibyte_characters(regexes, ranges)});
}

}  // namespace

RegexId one_of_characters(RegexSet& regexes, const CodePointRanges& ranges, TextForm form) {
  const CodePointRanges characters = without_surrogates(ranges);
  if (form == TextForm::json) return one_of_json_characters(regexes, characters);
  ByteSet ascii;
  for (const auto& [first, last] : clipped_ranges(characters, 0, 0x7F)) {
    for (char32_t c = first; c <= last; ++c) ascii.set(c);
  }
  return regexes.alternation(regexes.bytes(ascii), multibyte_characters(regexes, characters));
}

RegexId any_character(RegexSet& regexes, TextForm form) {
  return one_of_characters(regexes, {{0, kLastCodePoint}}, form);
}

RegexId literal_text(RegexSet& regexes, std::string_view text, TextForm form) {
  if (form == TextForm::utf8) return regexes.literal(text);
  std::vector<RegexId> parts;
  while (!text.empty()) {
    const DecodedCodePoint next = decode_utf8(text);
    const bool is_plain = next.code_point >= 0x20 && next.code_point < 0x7F &&
                          next.code_point != '"' && next.code_point != '\\';
    parts.push_back(is_plain
                        ? regexes.byte(static_cast<uint8_t>(next.code_point))
                        : one_of_characters(regexes, {{next.code_point, next.code_point}}, form));
    text.remove_prefix(next.size);
  }
  return regexes.concat(parts);
}

}  // namespace paceline
