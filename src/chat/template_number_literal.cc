#include "chat/template_number_literal.h"

#include <charconv>

namespace paceline {
namespace {

constexpr int kDecimal = 10;
constexpr int kOnlyZero = 1;  // the base whose digit is 0

// The value of a digit, or one beyond all bases.
int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char letter = static_cast<char>(c | 0x20);
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : 99;
}

// The base that "0x", "0o" or "0b" at the beginning of `text` names; 10 if none does.
int base_of(std::string_view text) {
  if (text.size() < 3 || text[0] != '0') return kDecimal;
  const char mark = static_cast<char>(text[1] | 0x20);
  return mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : kDecimal;
}

// A number's source, read from its beginning.
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
    // Not behind a dot: a.0.1 are two subscripts.
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

}  // namespace paceline
