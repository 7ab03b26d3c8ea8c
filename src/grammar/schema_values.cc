#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json_writer.h"
#include "grammar/schema_node.h"

namespace paceline {
namespace {

// "d.ddde[+-]dd" as plain digits.
std::string without_exponent(std::string_view scientific) {
  std::string sign;
  if (scientific[0] == '-') {
    sign = "-";
    scientific.remove_prefix(1);
  }
  const size_t e = scientific.find('e');
  std::string digits(1, scientific[0]);
  if (e > 1) digits += scientific.substr(2, e - 2);
  int exponent = 0;
  const size_t begin = e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(scientific.data() + begin, scientific.data() + scientific.size(), exponent);
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  if (digits == "0") return "0";
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto num_whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= num_whole) return sign + digits.append(num_whole - digits.size(), '0');
  return sign + digits.substr(0, num_whole) + "." + digits.substr(num_whole);
}

long double long_value(const Json& number) {
  if (const auto value = number.integer(); value && number.is_integer()) {
    return static_cast<long double>(*value);
  }
  if (const auto value = number.unsigned_integer(); value && number.is_integer()) {
    return static_cast<long double>(*value);
  }
  return static_cast<long double>(*number.number());
}

template <class T>
void sort_values(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

std::string plain_decimal(const Json& number) {
  if (number.is_integer()) return to_json(number);
  constexpr size_t kLongest = 32;  // of 17 digits, a point, signs and an exponent
  char text[kLongest];
  const auto end =
      std::to_chars(text, text + kLongest, *number.number(), std::chars_format::scientific).ptr;
  return without_exponent({text, static_cast<size_t>(end - text)});
}

SchemaNumberLimit schema_number_limit(const Json& number, bool is_excluded) {
  return {plain_decimal(number), long_value(number), is_excluded};
}

SchemaValues schema_values(std::span<const Json> values) {
  SchemaValues found;
  for (const Json& value : values) {
    if (value.is_null()) found.constants |= kNullKind;
    if (value.is_bool()) found.constants |= *value.boolean() ? kTrueKind : kFalseKind;
    if (value.is_number()) found.numbers.push_back(plain_decimal(value));
    if (value.is_string()) found.strings.push_back(*value.string());
  }
  sort_values(found.numbers);
  sort_values(found.strings);
  return found;
}

}  // namespace paceline
