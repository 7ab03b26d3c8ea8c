#include "chat/python_number.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>

#include "chat/python_case.h"
#include "chat/python_character.h"
#include "chat/python_string.h"
#include "chat/template_error.h"

namespace paceline {
namespace {

// Converts digits of other scripts to ASCII.
std::string with_ascii_digits(std::string_view text) {
  std::string out;
  for_each_code_point(text, [&](char32_t c, std::string_view bytes) {
    if (c < 0x80 || !is_decimal(c)) {
      out += bytes;
      return;
    }
    char32_t zero = c;  // runs of digits begin with a zero, ten by ten
    while (is_decimal(zero - 1)) --zero;
    out.push_back(static_cast<char>('0' + (c - zero) % 10));
  });
  return out;
}

// Removes blanks at the ends and single underscores between digits; nothing if there are other
// underscores.
std::optional<std::string> bare_number(std::string_view text) {
  const std::string digits = with_ascii_digits(stripped(text, Ends::both));
  const std::string_view inner = digits;
  std::string bare;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '_') {
      bare.push_back(inner[i]);
      continue;
    }
    const bool between = i > 0 && i + 1 < inner.size() &&
                         std::isalnum(static_cast<unsigned char>(inner[i - 1])) != 0 &&
                         std::isalnum(static_cast<unsigned char>(inner[i + 1])) != 0;
    if (!between) return std::nullopt;
  }
  return bare;
}

}  // namespace

std::optional<int64_t> parse_int(std::string_view text, int base) {
  const auto bare = bare_number(text);
  if (!bare) return std::nullopt;
  std::string digits = *bare;
  const bool has_sign = digits.starts_with('+') || digits.starts_with('-');
  if (has_sign && digits[0] == '+') digits.erase(0, 1);
  const size_t mark = digits.starts_with('-') ? 2 : 1;
  if (digits.size() > mark + 1 && digits[mark - 1] == '0') {
    const char letter = static_cast<char>(digits[mark] | 0x20);
    const int named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (named != 0 && (base == named || base == 0)) {
      digits.erase(mark - 1, 2);
      base = named;
    }
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) return std::nullopt;
  int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value, base);
  if (result.ec == std::errc::result_out_of_range && result.ptr == end) {
    throw TemplateError("the integer {} is beyond 64 bits", digits.substr(0, 40));
  }
  if (digits.empty() || result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  const auto bare = bare_number(text);
  if (!bare || bare->empty()) return std::nullopt;
  std::string digits = lower_case(*bare);
  double sign = 1;
  if (digits[0] == '+' || digits[0] == '-') {
    sign = digits[0] == '-' ? -1 : 1;
    digits.erase(0, 1);
  }
  if (digits == "inf" || digits == "infinity") return sign * HUGE_VAL;
  if (digits == "nan") return std::nan("");
  if (digits.empty() ||
      (std::isdigit(static_cast<unsigned char>(digits[0])) == 0 && digits[0] != '.')) {
    return std::nullopt;
  }
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value);
  if (result.ec == std::errc::result_out_of_range && result.ptr == end) {
    return sign * (digits.find("e-") != std::string::npos ? 0.0 : HUGE_VAL);
  }
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return sign * value;
}

int64_t truncated(double value) {
  constexpr double kBeyond = 9.2e18;
  if (!(std::fabs(value) < kBeyond)) throw TemplateError("an integer beyond 64 bits");
  return static_cast<int64_t>(value);
}

}  // namespace paceline
