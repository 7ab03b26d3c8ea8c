#include "load/gguf_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace paceline {

std::string GgufFields::key(std::string_view name) const {
  return fmt::format("{}.{}", architecture_.name, name);
}

std::optional<int64_t> GgufFields::integer(std::string_view name) const {
  return metadata_.integer(key(name));
}

std::optional<int64_t> GgufFields::layer_integer(std::string_view name) const {
  if (!metadata_.is_array(key(name))) return integer(name);
  const auto values = metadata_.integers(key(name));
  if (!values || values->empty()) corrupt(name, "an empty list, expected a number for each layer");
  for (const int64_t value : *values) {
    if (value == values->front()) continue;
    unsupported(name, fmt::format("layers that differ ({} and {})", values->front(), value));
  }
  return values->front();
}

std::optional<double> GgufFields::number(std::string_view name) const {
  const auto value = metadata_.number(key(name));
  if (!value) return std::nullopt;
  if (!std::isfinite(*value)) corrupt(name, "not a finite number");
  return shortest_decimal(*value);
}

std::optional<std::string_view> GgufFields::string(std::string_view name) const {
  return metadata_.string(key(name));
}

int64_t GgufFields::checked_size(std::string_view name, std::optional<int64_t> value) const {
  constexpr int64_t kMaxSize = int64_t{1} << 24;
  if (!value) corrupt(name, "missing, expected a size");
  if (*value < 1 || *value > kMaxSize) {
    corrupt(name, fmt::format("{}, expected 1 to {}", *value, kMaxSize));
  }
  return *value;
}

int64_t GgufFields::size(std::string_view name) const { return checked_size(name, integer(name)); }

int64_t GgufFields::layer_size(std::string_view name) const {
  return checked_size(name, layer_integer(name));
}

void GgufFields::corrupt(std::string_view name, std::string_view what) const {
  throw Error(ErrorCode::corrupt, fmt::format("{}: {}: {}", metadata_.file(), key(name), what));
}

void GgufFields::unsupported(std::string_view name, std::string_view what) const {
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: {}: {} aren't supported", metadata_.file(), key(name), what));
}

double shortest_decimal(double value) {
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;
  const std::string text = fmt::format("{}", narrow);
  double decimal = value;
  std::from_chars(text.data(), text.data() + text.size(), decimal);
  return decimal;
}

}  // namespace paceline
