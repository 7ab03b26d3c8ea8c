#include "cli/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace paceline {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Digits, a point, an exponent, underscores: what a number without its sign may have. Other texts
// aren't numbers, even where from_chars would read one.
bool may_be_number(std::string_view text) {
  const bool begins = !text.empty() && (is_digit(text[0]) ||
                                        (text.size() > 1 && text[0] == '.' && is_digit(text[1])));
  return begins && text.find_first_not_of("0123456789.eE+-_xXabcdefABCDEF") == text.npos;
}

template <class T>
std::optional<T> read_whole(std::string_view text, int base = 10) {
  T value{};
  std::from_chars_result parsed{};
  if constexpr (std::is_floating_point_v<T>) {
    parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  } else {
    parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  }
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

// `text` has no underscores. Null when it isn't a number.
Json number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const bool is_negative = text.starts_with('-');
  const std::string_view digits = is_negative ? text.substr(1) : text;
  if (digits.starts_with("0x")) {
    const auto value = read_whole<int64_t>(digits.substr(2), 16);
    return value ? Json(is_negative ? -*value : *value) : Json();
  }
  if (const auto value = read_whole<int64_t>(text)) return *value;
  if (const auto value = read_whole<uint64_t>(text)) return *value;
  const auto value = read_whole<double>(text);
  return value ? Json(*value) : Json();
}

}  // namespace

std::optional<Json> plain_yaml_scalar(std::string_view text) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Json();
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return Json(true);
  }
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) {
    return Json(false);
  }
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  const std::string_view digits = is_signed ? text.substr(1) : text;
  if (is_one_of(digits, {".inf", ".Inf", ".INF"})) {
    return Json(text.starts_with('-') ? -HUGE_VAL : HUGE_VAL);
  }
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return std::nullopt;
  if (!may_be_number(digits)) return Json(std::string(text));
  std::string plain(text);
  std::erase(plain, '_');
  Json number = number_of(plain);
  if (number.is_null()) return Json(std::string(text));
  const bool has_leading_zero = digits.size() > 1 && digits[0] == '0' && is_digit(digits[1]);
  if (has_leading_zero) return std::nullopt;
  return number;
}

}  // namespace paceline
