// Filters with numbers as results, and `default`.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/python_number.h"
#include "chat/template_arithmetic.h"
#include "chat/template_convert.h"
#include "chat/template_filters.h"

namespace paceline {
namespace {

using Runtime = TemplateRuntime;
using Value = TemplateValue;
using Arguments = ArgumentReader;

Value absolute(Runtime&, const Value& value, Arguments&) {
  require_defined(value);
  if (value.is_float()) return std::fabs(value.real());
  if (!value.is_integral()) {
    throw TemplateError("bad operand type for abs(): '{}'", value.type_name());
  }
  return value.integer() < 0 ? negated(value) : Value(value.integer());
}

Value to_int(Runtime&, const Value& value, Arguments& arguments) {
  Value otherwise = arguments.optional("default").value_or(Value(int64_t{0}));
  const int64_t base = arguments.integer("base", 10);
  require_defined(value);
  if (value.is_integral()) return value.integer();
  if (value.is_float()) return std::isfinite(value.real()) ? truncated(value.real()) : otherwise;
  if (!value.is_string()) return otherwise;
  if (const auto number =
          parse_int(value.text(), static_cast<int>(std::clamp<int64_t>(base, -1, 99))))
    return *number;
  const auto real = parse_float(value.text());
  return real && std::isfinite(*real) ? truncated(*real) : otherwise;
}

Value to_float(Runtime&, const Value& value, Arguments& arguments) {
  Value otherwise = arguments.optional("default").value_or(Value(0.0));
  require_defined(value);
  if (value.is_number()) return value.real();
  if (!value.is_string()) return otherwise;
  const auto real = parse_float(value.text());
  return real ? Value(*real) : otherwise;
}

double read_double(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Half to even on the exact decimal value, as Python's round().
double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || value == 0 || digits > 300) return value;
  if (digits >= 0) return read_double(fmt::format("{:.{}f}", value, digits));
  const std::string written = fmt::format("{:e}", value);
  const int64_t exponent = std::stoi(written.substr(written.find('e') + 1));
  const int64_t significant = exponent + 1 + std::max<int64_t>(digits, -400);
  if (significant > 0) return read_double(fmt::format("{:.{}e}", value, significant - 1));
  // The unit exceeds the value, which is rounded up only above half a unit.
  const bool goes_up =
      significant == 0 && std::fabs(value) > read_double(fmt::format("5e{}", exponent));
  return std::copysign(goes_up ? read_double(fmt::format("1e{}", exponent + 1)) : 0.0, value);
}

// To a multiple of a power of ten, half to even.
Value rounded(int64_t value, int64_t digits) {
  if (digits >= 0) return value;
  if (digits < -18) return int64_t{0};
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i) unit *= 10;
  const int64_t rest = value % unit;
  const int64_t twice =
      2 * (rest < 0 ? -rest : rest) - unit;  // its sign: below or above half a unit
  const bool goes_up = twice > 0 || (twice == 0 && value / unit % 2 != 0);
  int64_t result = value - rest;
  const int64_t step = value < 0 ? -unit : unit;
  if (goes_up && __builtin_add_overflow(result, step, &result)) {
    throw TemplateError("an integer beyond 64 bits");
  }
  return result;
}

Value round_filter(Runtime&, const Value& value, Arguments& arguments) {
  const int64_t precision = arguments.integer("precision", 0);
  const std::string method = arguments.text("method", "common");
  if (method != "common" && method != "ceil" && method != "floor") {
    throw TemplateError("method must be common, ceil or floor");
  }
  require_defined(value);
  if (!value.is_number()) {
    throw TemplateError("type {} doesn't define __round__ method", value.type_name());
  }
  if (method == "common") {
    if (value.is_integral()) return rounded(value.integer(), precision);
    return rounded(value.real(), precision);
  }
  if (value.is_integral() && precision >= 0) return value.real();
  const double power = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.real() * power;
  // Python's ceil and floor return integers, which have no -0.
  return ((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) + 0.0) / power;
}

Value sum(Runtime& runtime, const Value& value, Arguments& arguments) {
  const AttributePath attribute(arguments.optional("attribute").value_or(Value()));
  Value total = arguments.optional("start").value_or(Value(int64_t{0}));
  for (const Value& item : to_items(runtime, value)) {
    runtime.step();
    total = arithmetic(runtime, BinaryOperator::add, total, attribute.of(runtime, item));
  }
  return total;
}

Value length(Runtime&, const Value& value, Arguments&) {
  const auto found = length_if_any(value);
  if (!found) throw TemplateError("object of type '{}' has no len()", value.type_name());
  return *found;
}

Value otherwise(Runtime&, const Value& value, Arguments& arguments) {
  const Value replacement = arguments.optional("default_value").value_or(Value(std::string()));
  const bool if_false = arguments.truth("boolean", false);
  return value.is_undefined() || (if_false && !value.truth()) ? replacement : value;
}

constexpr FilterDefinition kNumberFilters[] = {
    {"abs", absolute},       {"int", to_int},        {"float", to_float},
    {"round", round_filter}, {"sum", sum},           {"length", length},
    {"count", length},       {"default", otherwise}, {"d", otherwise},
};

}  // namespace

std::span<const FilterDefinition> number_filters() { return kNumberFilters; }

}  // namespace paceline
