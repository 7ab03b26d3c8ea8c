#include "weights/gguf_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>

#include "base/error.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr std::array<std::string_view, 13> kTypeNames = {
    "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
    "bool",  "string", "array",  "uint64", "int64",  "float64"};

std::string_view name_of(GgufValueType type) { return kTypeNames[static_cast<size_t>(type)]; }

// Element `index` of an array of T, or the value itself. Files promise no alignment.
template <class T>
T element(const GgufValue& value, size_t index) {
  T result;
  std::memcpy(&result, value.bytes.data() + index * sizeof(T), sizeof(T));
  return result;
}

// Calls body<T>() with the C++ type of a number; returns false for strings and arrays.
template <class Body>
bool with_number_type(GgufValueType type, Body&& body) {
  switch (type) {
    case GgufValueType::boolean:
    case GgufValueType::uint8:
      return body.template operator()<uint8_t>(), true;
    case GgufValueType::int8:
      return body.template operator()<int8_t>(), true;
    case GgufValueType::uint16:
      return body.template operator()<uint16_t>(), true;
    case GgufValueType::int16:
      return body.template operator()<int16_t>(), true;
    case GgufValueType::uint32:
      return body.template operator()<uint32_t>(), true;
    case GgufValueType::int32:
      return body.template operator()<int32_t>(), true;
    case GgufValueType::uint64:
      return body.template operator()<uint64_t>(), true;
    case GgufValueType::int64:
      return body.template operator()<int64_t>(), true;
    case GgufValueType::float32:
      return body.template operator()<float>(), true;
    case GgufValueType::float64:
      return body.template operator()<double>(), true;
    default:
      return false;
  }
}

bool is_integer(GgufValueType type) {
  switch (type) {
    case GgufValueType::float32:
    case GgufValueType::float64:
    case GgufValueType::boolean:
    case GgufValueType::string:
    case GgufValueType::array:
      return false;
    default:
      return true;
  }
}

// All elements as To; nothing when an integer doesn't fit.
template <class To>
std::optional<std::vector<To>> converted(const GgufValue& value, GgufValueType type) {
  std::vector<To> result(value.num_elements);
  bool fits = true;
  with_number_type(type, [&]<class From>() {
    for (size_t i = 0; i < result.size(); ++i) {
      const From from = element<From>(value, i);
      if constexpr (std::same_as<From, uint64_t> && std::same_as<To, int64_t>) {
        fits = fits && from <= uint64_t{INT64_MAX};
      }
      result[i] = static_cast<To>(from);
    }
  });
  if (!fits) return std::nullopt;
  return result;
}

}  // namespace

std::string describe_type(const GgufValue& value) {
  if (value.type != GgufValueType::array) return std::string(name_of(value.type));
  return fmt::format("array of {}", name_of(value.element_type));
}

GgufMetadata::GgufMetadata(std::string file, std::vector<GgufValue> values)
    : file_(std::move(file)), values_(std::move(values)) {
  std::ranges::sort(values_, {}, &GgufValue::key);
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto at = std::ranges::lower_bound(values_, key, {}, &GgufValue::key);
  return at == values_.end() || at->key != key ? nullptr : &*at;
}

void GgufMetadata::fail(const GgufValue& value, std::string_view expected) const {
  throw Error(ErrorCode::corrupt,
              fmt::format("{}: metadata {}: expected {}, found {}", file_, quoted_name(value.key),
                          expected, describe_type(value)));
}

const GgufValue* GgufMetadata::find_array(std::string_view key, std::string_view expected) const {
  const GgufValue* value = find(key);
  if (value != nullptr && value->type != GgufValueType::array) fail(*value, expected);
  return value;
}

bool GgufMetadata::is_array(std::string_view key) const {
  const GgufValue* value = find(key);
  return value != nullptr && value->type == GgufValueType::array;
}

std::optional<int64_t> GgufMetadata::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!is_integer(value->type)) fail(*value, "an integer");
  const auto found = converted<int64_t>(*value, value->type);
  if (!found) fail(*value, "an integer below 2^63");
  return found->front();
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::optional<double> result;
  if (value->type != GgufValueType::boolean) {
    with_number_type(value->type,
                     [&]<class T>() { result = static_cast<double>(element<T>(*value, 0)); });
  }
  if (!result) fail(*value, "a number");
  return result;
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::boolean) fail(*value, "a bool");
  return value->bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufMetadata::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::string) fail(*value, "a string");
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

std::optional<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of strings";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->element_type != GgufValueType::string) fail(*value, kExpected);
  std::vector<std::string_view> result;
  result.reserve(value->num_elements);
  const auto* at = reinterpret_cast<const char*>(value->bytes.data());
  for (uint64_t i = 0; i < value->num_elements; ++i) {
    uint64_t length = 0;
    std::memcpy(&length, at, sizeof(length));
    result.emplace_back(at + sizeof(length), length);
    at += sizeof(length) + length;
  }
  return result;
}

std::optional<std::vector<int64_t>> GgufMetadata::integers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of integers";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (!is_integer(value->element_type) && value->element_type != GgufValueType::boolean) {
    fail(*value, kExpected);
  }
  auto result = converted<int64_t>(*value, value->element_type);
  if (!result) fail(*value, "an array of integers below 2^63");
  return result;
}

std::optional<std::vector<float>> GgufMetadata::numbers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of numbers";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->element_type == GgufValueType::string ||
      value->element_type == GgufValueType::boolean) {
    fail(*value, kExpected);
  }
  return converted<float>(*value, value->element_type);
}

}  // namespace paceline
