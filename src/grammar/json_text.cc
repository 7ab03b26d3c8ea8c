#include "grammar/json_text.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/json_writer.h"
#include "grammar/decimal.h"
#include "grammar/magnitude_range.h"
#include "grammar/text_form.h"
#include "paceline/error.h"

namespace paceline {

namespace {

ByteSet byte_range(uint8_t first, uint8_t last) {
  ByteSet set;
  for (size_t byte = first; byte <= last; ++byte) set.set(byte);
  return set;
}

ByteSet json_hex_digits() {
  return byte_range('0', '9') | byte_range('a', 'f') | byte_range('A', 'F');
}

RegexId json_digit(RegexSet& regexes) { return regexes.bytes(byte_range('0', '9')); }

// Digits without a leading zero.
RegexId json_whole(RegexSet& regexes) {
  return regexes.alternation(regexes.byte('0'), regexes.concat(regexes.bytes(byte_range('1', '9')),
                                                               regexes.star(json_digit(regexes))));
}

RegexId json_sign(RegexSet& regexes) { return regexes.optional(regexes.byte('-')); }

// A point and `digits`, or neither.
RegexId optional_fraction(RegexSet& regexes, RegexId digits) {
  return regexes.optional(regexes.concat(regexes.byte('.'), digits));
}

RegexId zeros_fraction(RegexSet& regexes) {
  return optional_fraction(regexes, regexes.plus(regexes.byte('0')));
}

// \uXXXX of any character, as pairs beyond U+FFFF; without the backslash.
RegexId json_unicode_escape(RegexSet& regexes) {
  const ByteSet hex = json_hex_digits();
  ByteSet letter_d;
  letter_d.set('d').set('D');
  const RegexId digit = regexes.bytes(hex);
  const RegexId two = regexes.repeat(digit, 2, 2);
  const RegexId d = regexes.bytes(letter_d);
  const RegexId low = regexes.bytes(byte_range('c', 'f') | byte_range('C', 'F'));
  const RegexId high =
      regexes.bytes(byte_range('8', '9') | byte_range('a', 'b') | byte_range('A', 'B'));
  const RegexId other = regexes.concat(regexes.bytes(hex & ~letter_d), regexes.repeat(digit, 3, 3));
  const RegexId below = regexes.concat(std::array{d, regexes.bytes(byte_range('0', '7')), two});
  const RegexId pair =
      regexes.concat(std::array{d, high, two, regexes.literal("\\u"), d, low, two});
  return regexes.concat(regexes.byte('u'), regexes.alternation(std::array{other, below, pair}));
}

struct SignedBound {
  Decimal value;
  bool is_excluded = false;
};

// The numbers between the bounds that begin with the sign of `is_negative`. For negative ones both
// bounds change their places and signs.
RegexId numbers_of_sign(RegexSet& regexes, bool is_negative, const std::optional<SignedBound>& min,
                        const std::optional<SignedBound>& max) {
  const std::optional<SignedBound>& low = is_negative ? max : min;
  const std::optional<SignedBound>& high = is_negative ? min : max;
  const auto is_below_zero = [&](const SignedBound& bound) {
    return !bound.value.is_zero() && bound.value.is_negative != is_negative;
  };
  if (high && is_below_zero(*high)) return RegexSet::kNothing;
  MagnitudeRange range;
  if (low && !is_below_zero(*low)) {
    range.min = low->value;
    range.excludes_min = low->is_excluded;
  }
  if (high) {
    range.max = high->value;
    range.excludes_max = high->is_excluded;
  }
  const RegexId magnitudes = magnitudes_between(regexes, range);
  return is_negative ? regexes.concat(regexes.byte('-'), magnitudes) : magnitudes;
}

// The multiples of 10^`exponent`, or of 10^-`scale`.
RegexId multiples_of_power(RegexSet& regexes, uint32_t exponent, uint32_t scale) {
  const RegexId zeros = regexes.star(regexes.byte('0'));
  if (scale > 0) {
    const RegexId digits = regexes.concat(regexes.repeat(json_digit(regexes), 1, scale), zeros);
    return regexes.concat(
        std::array{json_sign(regexes), json_whole(regexes), optional_fraction(regexes, digits)});
  }
  const RegexId above = regexes.concat(
      std::array{regexes.bytes(byte_range('1', '9')), regexes.star(json_digit(regexes)),
                 regexes.repeat(regexes.byte('0'), exponent, exponent)});
  return regexes.concat(std::array{
      json_sign(regexes), regexes.alternation(regexes.byte('0'), above), zeros_fraction(regexes)});
}

}  // namespace

RegexId json_string(RegexSet& regexes) {
  ByteSet plain = byte_range(0x20, 0x7F);
  plain.reset('"').reset('\\');
  ByteSet escapes;
  for (const char letter : std::string_view("\"\\/bfnrt"))
    escapes.set(static_cast<uint8_t>(letter));
  const RegexId escape =
      regexes.concat(regexes.byte('\\'),
                     regexes.alternation(regexes.bytes(escapes), json_unicode_escape(regexes)));
  const RegexId multibyte = one_of_characters(regexes, {{0x80, kLastCodePoint}}, TextForm::utf8);
  return json_quoted(
      regexes,
      regexes.star(regexes.alternation(std::array{regexes.bytes(plain), escape, multibyte})));
}

ByteSpelling json_string_spelling() {
  ByteSpelling spelling;
  for (char32_t c = 0; c < 0x80; ++c) {
    const std::string text(1, static_cast<char>(c));
    const std::string quoted = json_quote(text);
    const std::string escaped = quoted.substr(1, quoted.size() - 2);
    if (escaped != text) spelling.of_byte[c] = escaped;
  }
  return spelling;
}

RegexId json_quoted(RegexSet& regexes, RegexId body) {
  const RegexId quote = regexes.byte('"');
  return regexes.concat(std::array{quote, body, quote});
}

RegexId json_decimal(RegexSet& regexes) {
  return regexes.concat(std::array{json_sign(regexes), json_whole(regexes), any_fraction(regexes)});
}

RegexId json_number(RegexSet& regexes) {
  ByteSet letter_e;
  letter_e.set('e').set('E');
  ByteSet signs;
  signs.set('+').set('-');
  const RegexId exponent =
      regexes.concat(std::array{regexes.bytes(letter_e), regexes.optional(regexes.bytes(signs)),
                                regexes.plus(json_digit(regexes))});
  return regexes.concat(std::array{json_sign(regexes), json_whole(regexes), any_fraction(regexes),
                                   regexes.optional(exponent)});
}

RegexId json_integer(RegexSet& regexes) {
  return regexes.concat(json_digits(regexes), zeros_fraction(regexes));
}

RegexId json_digits(RegexSet& regexes) {
  return regexes.concat(json_sign(regexes), json_whole(regexes));
}

RegexId json_decimals_between(RegexSet& regexes, const JsonNumberRange& range) {
  if (!range.min && !range.max) return json_decimal(regexes);
  std::optional<SignedBound> min;
  std::optional<SignedBound> max;
  if (range.min) min = {parse_decimal(*range.min), range.excludes_min};
  if (range.max) max = {parse_decimal(*range.max), range.excludes_max};
  return regexes.alternation(numbers_of_sign(regexes, false, min, max),
                             numbers_of_sign(regexes, true, min, max));
}

RegexId json_multiples_of(RegexSet& regexes, std::string_view divisor) {
  const Decimal value = parse_decimal(divisor);
  if (value.is_negative || value.is_zero()) {
    throw Error(ErrorCode::invalid,
                fmt::format("a multiple of '{}', which isn't above 0", divisor.substr(0, 80)));
  }
  constexpr size_t kMaxScale = 18;
  constexpr uint64_t kMaxDivisor = uint64_t{1} << 31;
  std::string digits = value.whole + value.fraction;
  digits.erase(0, digits.find_first_not_of('0'));
  const auto scale = static_cast<uint32_t>(value.fraction.size());
  if (digits.find_first_not_of('0', 1) == std::string::npos && digits.front() == '1') {
    return multiples_of_power(regexes, static_cast<uint32_t>(digits.size() - 1), scale);
  }
  const uint64_t scaled = digits.size() > 10 ? kMaxDivisor + 1 : std::stoull(digits);
  if (scale > kMaxScale || scaled > kMaxDivisor) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("multiples of '{}'; without its point a divisor is at most 2^31, with at "
                    "most {} digits after the point",
                    divisor.substr(0, 80), kMaxScale));
  }
  const RegexId multiple = regexes.multiple_of(static_cast<uint32_t>(scaled), scale);
  if (scale > 0) return regexes.intersection(json_decimal(regexes), multiple);
  // With more zeros what isn't a multiple has many more states.
  const RegexId integer =
      regexes.concat(json_digits(regexes), regexes.optional(regexes.literal(".0")));
  return regexes.intersection(integer, multiple);
}

RegexId json_number_equal_to(RegexSet& regexes, std::string_view value) {
  return json_decimals_between(regexes, {.min = value, .max = value});
}

}  // namespace paceline
