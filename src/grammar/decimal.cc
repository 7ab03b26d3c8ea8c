#include "grammar/decimal.h"

#include <fmt/format.h>

#include <algorithm>

#include "paceline/error.h"

namespace paceline {

namespace {

constexpr size_t kMaxDecimalDigits = 400;

// Takes the digits at the begin of `text`.
std::string_view take_digits(std::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

bool take_one_of(std::string_view& text, std::string_view characters) {
  if (text.empty() || characters.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// The digits of an exponent; more than any that is supported when it is too long to count.
int64_t exponent_value(std::string_view digits, bool is_negative) {
  int64_t value = 0;
  for (const char digit : digits) value = std::min<int64_t>(value * 10 + (digit - '0'), 1'000'000);
  return is_negative ? -value : value;
}

}  // namespace

Decimal parse_decimal(std::string_view text) {
  const std::string_view given = text;
  const auto require = [&](bool condition) {
    if (condition) return;
    throw Error(ErrorCode::invalid,
                fmt::format("'{}' isn't a number as JSON writes it", given.substr(0, 80)));
  };
  Decimal value{.is_negative = take_one_of(text, "-")};
  const std::string_view whole = take_digits(text);
  require(!whole.empty() && (whole == "0" || whole.front() != '0'));
  std::string_view fraction;
  if (take_one_of(text, ".")) {
    fraction = take_digits(text);
    require(!fraction.empty());
  }
  int64_t exponent = 0;
  if (take_one_of(text, "eE")) {
    const bool is_negative = !text.empty() && text.front() == '-';
    take_one_of(text, "+-");
    const std::string_view digits = take_digits(text);
    require(!digits.empty());
    exponent = exponent_value(digits, is_negative);
  }
  require(text.empty());

  std::string digits = std::string(whole) + std::string(fraction);
  int64_t point = static_cast<int64_t>(whole.size()) + exponent;
  const size_t first = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, first);
  point -= static_cast<int64_t>(first);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.empty()) return {};
  const auto size = static_cast<int64_t>(digits.size());
  constexpr auto kMost = static_cast<int64_t>(kMaxDecimalDigits);
  if (point > kMost || size - point > kMost) {
    throw Error(ErrorCode::exhausted,
                fmt::format("the number '{}' has more than {} digits on a side of its point",
                            given.substr(0, 80), kMaxDecimalDigits));
  }
  if (point < 0) digits.insert(0, static_cast<size_t>(-point), '0');
  if (point > size) digits.append(static_cast<size_t>(point - size), '0');
  const auto split = static_cast<size_t>(std::max<int64_t>(point, 0));
  value.whole = digits.substr(0, split);
  value.fraction = digits.substr(split);
  return value;
}

int compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int order = a.whole.compare(b.whole)) return order;
  return a.fraction.compare(b.fraction);
}

}  // namespace paceline
