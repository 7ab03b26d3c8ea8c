#include "chat/template_literal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "chat/template_error.h"

namespace paceline {
namespace {

constexpr int kDecimal = 10;
constexpr int kOnlyZero = 1;  // the base whose digit is 0

// The value of a digit; for another character a value above all bases.
int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char letter = static_cast<char>(c | 0x20);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : 99;
}

// The base of the prefix "0x", "0o" or "0b"; 10 without one.
int base_of(std::string_view text) {
  if (text.size() < 3 || text[0] != '0') return kDecimal;
  const char mark = static_cast<char>(text[1] | 0x20);
  return mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : kDecimal;
}

// Scans a number from its beginning.
class Scanner {
 public:
  Scanner(std::string_view source, size_t begin) : source_(source), begin_(begin) {}

  NumberLiteral run() const {
    const int base = base_of(source_.substr(begin_));
    if (base != kDecimal) {
      const size_t end = end_of_digits(begin_ + 2, base);
      if (end > begin_ + 2) return {end, false};
    }
    const size_t end_of_integer = end_of_digits(begin_, kDecimal);
    // Not after a dot: a.0.1 has two subscripts.
    const bool may_be_float = begin_ == 0 || source_[begin_ - 1] != '.';
    const size_t end =
        may_be_float ? end_of_exponent(end_of_fraction(end_of_integer)) : end_of_integer;
    if (end != end_of_integer) return {end, true};
    // 007 is three integers, 000 is one.
    return {source_[begin_] == '0' ? end_of_digits(begin_, kOnlyZero) : end_of_integer, false};
  }

 private:
  bool has(size_t at, char c) const { return at < source_.size() && source_[at] == c; }
  bool is_digit(size_t at, int base = kDecimal) const {
    return at < source_.size() && digit_value(source_[at]) < base;
  }

  // Digits with single underscores between them.
  size_t end_of_digits(size_t at, int base) const {
    while (is_digit(at, base) || (has(at, '_') && is_digit(at + 1, base))) ++at;
    return at;
  }

  size_t end_of_fraction(size_t at) const {
    return has(at, '.') && is_digit(at + 1) ? end_of_digits(at + 1, kDecimal) : at;
  }

  size_t end_of_exponent(size_t at) const {
    if (!has(at, 'e') && !has(at, 'E')) return at;
    const size_t digits = at + (has(at + 1, '+') || has(at + 1, '-') ? 2 : 1);
    return is_digit(digits) ? end_of_digits(digits, kDecimal) : at;
  }

  std::string_view source_;
  size_t begin_;
};

// The code point of exactly `count` hexadecimal digits.
char32_t hex_digits(std::string_view digits, size_t count) {
  uint32_t value = 0;
  const char* const end = digits.data() + std::min(count, digits.size());
  if (digits.size() < count || std::from_chars(digits.data(), end, value, 16).ptr != end) {
    throw TemplateError("a string's escape needs {} hexadecimal digits", count);
  }
  if (value > 0x10FFFF) throw TemplateError("a string's escape is beyond U+10FFFF");
  return value;
}

char simple_escape(char c) {
  constexpr std::string_view kLetters = "ntrabfv\\'\"", kMeant = "\n\t\r\a\b\f\v\\'\"";
  const size_t at = kLetters.find(c);
  return at == std::string_view::npos ? '\0' : kMeant[at];
}

// Appends a code point; joins surrogate pairs.
void append_code_point(std::string& out, char32_t code_point, char32_t& high) {
  const bool is_low = code_point >= 0xDC00 && code_point < 0xE000;
  if (high != 0 && is_low) {
    append_utf8(out, 0x10000 + ((high - 0xD800) << 10) + (code_point - 0xDC00));
    high = 0;
    return;
  }
  if (high != 0) append_utf8(out, kReplacementCharacter);
  high = 0;
  if (code_point >= 0xD800 && code_point < 0xDC00) {
    high = code_point;
  } else {
    append_utf8(out, is_low ? kReplacementCharacter : code_point);
  }
}

}  // namespace

NumberLiteral scan_number(std::string_view source, size_t begin) {
  return Scanner(source, begin).run();
}

std::optional<int64_t> integer_of_literal(std::string_view text) {
  const int base = base_of(text);
  if (base != kDecimal) text.remove_prefix(2);
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

std::string unescape_string(std::string_view text) {
  std::string out;
  char32_t high = 0;  // a high surrogate, whose low one may follow
  size_t i = 0;
  const auto flush = [&] {
    if (high != 0) append_utf8(out, kReplacementCharacter);
    high = 0;
  };
  while (i < text.size()) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      flush();
      out.push_back(text[i++]);
      continue;
    }
    const char c = text[i + 1];
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      append_code_point(out, hex_digits(text.substr(i + 2), digits), high);
      i += 2 + digits;
      continue;
    }
    flush();
    if (c >= '0' && c <= '7') {
      uint32_t value = 0;
      const std::string_view octal = text.substr(i + 1, 3);
      const auto read = std::from_chars(octal.data(), octal.data() + octal.size(), value, 8);
      append_utf8(out, value);
      i = static_cast<size_t>(read.ptr - text.data());
    } else if (c == 'N') {
      throw TemplateError("a string's escape \\N{...} isn't supported");
    } else if (c == '\n') {
      i += 2;
    } else if (const char simple = simple_escape(c); simple != '\0') {
      out.push_back(simple);
      i += 2;
    } else {
      out.push_back('\\');
      ++i;
    }
  }
  flush();
  return out;
}

}  // namespace paceline
