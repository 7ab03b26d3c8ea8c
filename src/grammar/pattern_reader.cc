#include "grammar/pattern_reader.h"

#include <fmt/format.h>

#include <string>

#include "base/utf8.h"
#include "grammar/unicode_property.h"

namespace paceline {

namespace {

constexpr uint32_t kMaxPatternCount = 1'000'000;

bool is_pattern_digit(char c) { return c >= '0' && c <= '9'; }
bool is_pattern_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// CharacterClassEscape of ECMA 262: \s is its WhiteSpace and its LineTerminator.
std::optional<CodePointRanges> escaped_class(char32_t letter) {
  static const CodePointRanges digits{{'0', '9'}};
  static const CodePointRanges word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  static const CodePointRanges space{
      {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
      {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  switch (letter) {
    case 'd':
      return digits;
    case 'D':
      return all_code_points_but(digits);
    case 'w':
      return word;
    case 'W':
      return all_code_points_but(word);
    case 's':
      return space;
    case 'S':
      return all_code_points_but(space);
    default:
      return std::nullopt;
  }
}

std::string shown_pattern(std::string_view pattern) {
  constexpr size_t kMostShown = 80;
  if (pattern.size() <= kMostShown) return std::string(pattern);
  std::string_view begin = pattern.substr(0, kMostShown);
  begin.remove_suffix(incomplete_utf8_suffix(begin));
  return std::string(begin) + "...";
}

}  // namespace

PatternReader::PatternReader(std::string_view pattern) : pattern_(pattern) {
  if (!is_valid_utf8(pattern)) throw Error(ErrorCode::invalid, "a pattern isn't valid UTF-8");
}

void PatternReader::fail(ErrorCode code, size_t position, std::string_view what) const {
  const int64_t character = count_code_points(pattern_.substr(0, position)) + 1;
  throw Error(code, fmt::format("the pattern '{}', character {}: {}", shown_pattern(pattern_),
                                character, what));
}

char PatternReader::peek(size_t distance) const {
  return at_ + distance < pattern_.size() ? pattern_[at_ + distance] : '\0';
}

bool PatternReader::accept(std::string_view text) {
  if (!is_next(text)) return false;
  at_ += text.size();
  return true;
}

char32_t PatternReader::take_character() {
  const DecodedCodePoint next = decode_utf8(pattern_.substr(at_));
  at_ += next.size;
  return next.code_point;
}

std::optional<uint32_t> PatternReader::take_count() {
  if (!is_pattern_digit(peek())) return std::nullopt;
  const size_t begin = at_;
  uint32_t count = 0;
  for (; is_pattern_digit(peek()); ++at_) {
    count = count * 10 + static_cast<uint32_t>(peek() - '0');
    if (count > kMaxPatternCount) {
      fail(ErrorCode::exhausted, begin, fmt::format("a count above {}", kMaxPatternCount));
    }
  }
  return count;
}

std::optional<uint32_t> PatternReader::take_hex_digits(size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    const char c = peek(i);
    const std::string_view digits = "0123456789abcdef";
    const size_t digit = digits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  at_ += count;
  return value;
}

// Behind \u.
char32_t PatternReader::take_unicode_escape() {
  const size_t begin = at_ - 2;
  if (accept("{")) {
    char32_t value = 0;
    bool has_digits = false;
    while (const auto digit = take_hex_digits(1)) {
      value = value * 16 + *digit;
      has_digits = true;
      if (value > kLastCodePoint) fail(ErrorCode::invalid, begin, "a code point above U+10FFFF");
    }
    if (has_digits && accept("}")) return value;
    fail(ErrorCode::invalid, begin, "expected \\u{, hexadecimal digits and }");
  }
  const auto unit = take_hex_digits(4);
  if (!unit) fail(ErrorCode::invalid, begin, "expected four hexadecimal digits after \\u");
  if (*unit < 0xD800 || *unit > 0xDBFF || !is_next("\\u")) return *unit;
  const size_t end = at_;
  at_ += 2;
  const auto low = take_hex_digits(4);
  if (low && *low >= 0xDC00 && *low <= 0xDFFF) {
    return 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00);
  }
  at_ = end;
  return *unit;
}

std::optional<char32_t> PatternReader::take_control_escape(char32_t letter) {
  const size_t begin = at_ - 2;
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    case 'f':
      return '\f';
    case '0':
      if (is_pattern_digit(peek())) fail(ErrorCode::invalid, begin, "an octal escape; use \\xHH");
      return U'\0';
    case 'c': {
      if (!is_pattern_letter(static_cast<unsigned char>(peek()))) {
        fail(ErrorCode::invalid, begin, "expected a letter after \\c");
      }
      return take_character() % 32;
    }
    case 'x': {
      const auto value = take_hex_digits(2);
      if (!value) fail(ErrorCode::invalid, begin, "expected two hexadecimal digits after \\x");
      return *value;
    }
    case 'u':
      return take_unicode_escape();
    default:
      return std::nullopt;
  }
}

// Behind \p or \P.
CodePointRanges PatternReader::take_property(bool is_negated) {
  const size_t begin = at_ - 2;
  const size_t close = pattern_.find('}', at_);
  if (!accept("{") || close == std::string_view::npos) {
    fail(ErrorCode::invalid, begin, "expected a property in braces after \\p");
  }
  const std::string_view name = pattern_.substr(at_, close - at_);
  const std::optional<CodePointRanges> found = unicode_property(name);
  if (!found) {
    fail(ErrorCode::unsupported, begin,
         fmt::format("the Unicode property '{}'; general categories (as L or Letter), Any, ASCII "
                     "and Assigned are supported",
                     shown_pattern(name)));
  }
  at_ = close + 1;
  return is_negated ? all_code_points_but(*found) : *found;
}

PatternReader::Item PatternReader::take_escaped_item(bool is_in_class) {
  const size_t begin = at_ - 1;
  if (is_at_end()) fail(ErrorCode::invalid, begin, "a backslash at the end");
  const char32_t c = take_character();
  if (const auto set = escaped_class(c)) return {*set, std::nullopt};
  if (c == 'p' || c == 'P') return {take_property(c == 'P'), std::nullopt};
  if (const auto control = take_control_escape(c)) return {{}, control};
  if (is_in_class && c == 'b') return {{}, U'\b'};
  if (!is_in_class) {
    if (c == 'b' || c == 'B') fail(ErrorCode::unsupported, begin, "a word boundary");
    if (c == 'k' || (c >= '1' && c <= '9')) {
      fail(ErrorCode::unsupported, begin, "a back-reference");
    }
  }
  if (c < 0x80 && !is_pattern_letter(c) && !is_pattern_digit(static_cast<char>(c))) {
    return {{}, c};
  }
  at_ = begin + 1;
  std::string shown;
  append_utf8(shown, c);
  fail(ErrorCode::invalid, begin, fmt::format("the escape \\{} isn't one of ECMA 262", shown));
}

CodePointRanges PatternReader::take_escape() {
  Item item = take_escaped_item(false);
  if (item.character) return {{*item.character, *item.character}};
  return std::move(item.set);
}

PatternReader::Item PatternReader::take_class_item() {
  if (accept("\\")) return take_escaped_item(true);
  return {{}, take_character()};
}

CodePointRanges PatternReader::take_class(bool ignores_case) {
  const size_t begin = at_ - 1;
  const bool is_negated = accept("^");
  CodePointRanges ranges;
  const auto add = [&](const Item& item) {
    if (item.character) ranges.emplace_back(*item.character, *item.character);
    ranges.insert(ranges.end(), item.set.begin(), item.set.end());
  };
  while (!accept("]")) {
    if (is_at_end()) fail(ErrorCode::invalid, begin, "a class without its ]");
    const size_t item_begin = at_;
    const Item first = take_class_item();
    if (peek() != '-' || at_ + 1 == pattern_.size() || peek(1) == ']') {
      add(first);
      continue;
    }
    accept("-");
    const Item last = take_class_item();
    if (!first.character || !last.character) {  // annex B: all three for themselves
      add(first);
      add(last);
      ranges.emplace_back('-', '-');
    } else if (*first.character > *last.character) {
      fail(ErrorCode::invalid, item_begin, "a range whose end is before its begin");
    } else {
      ranges.emplace_back(*first.character, *last.character);
    }
  }
  ranges = sorted_ranges(std::move(ranges));
  if (ignores_case) ranges = with_ascii_cases(ranges);
  return is_negated ? all_code_points_but(ranges) : ranges;
}

}  // namespace paceline
