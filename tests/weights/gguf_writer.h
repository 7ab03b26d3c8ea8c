// GgufWriter makes GGUF files for tests, valid or malformed.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weights/gguf_metadata.h"
#include "weights/gguf_type.h"

namespace paceline {

// The bytes of a number in memory.
template <class T>
std::string raw_bytes(T number) {
  static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

struct GgufWrittenTensor {
  std::string name;
  GgufType type = GgufType::f32;
  std::vector<uint64_t> extents;  // row-major
  std::string bytes;
  std::optional<uint64_t> offset = {};  // default: after the previous tensor, aligned
};

class GgufWriter {
 public:
  uint32_t version = 3;
  std::optional<uint64_t> num_tensors, num_keys;  // default: the real numbers
  uint64_t alignment = 32;  // of the data; a key general.alignment is the test's to add

  static std::string text(std::string_view content) {
    return raw_bytes(uint64_t{content.size()}).append(content);
  }

  // A value of any type as its bytes in the file.
  GgufWriter& raw(std::string_view key, GgufValueType type, std::string_view bytes) {
    keys_.push_back(text(key) + raw_bytes(type) + std::string(bytes));
    return *this;
  }
  template <class T>
  GgufWriter& number(std::string_view key, T value) {
    return raw(key, type_of<T>(), raw_bytes(value));
  }
  GgufWriter& boolean(std::string_view key, bool value) { return number(key, value); }
  GgufWriter& string(std::string_view key, std::string_view value) {
    return raw(key, GgufValueType::string, text(value));
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes;
    for (const std::string& value : values) bytes += text(value);
    return array(key, GgufValueType::string, values.size(), bytes);
  }
  template <class T>
  GgufWriter& numbers(std::string_view key, const std::vector<T>& values) {
    std::string bytes;
    for (const T value : values) bytes += raw_bytes(value);
    return array(key, type_of<T>(), values.size(), bytes);
  }
  GgufWriter& array(std::string_view key, GgufValueType type, uint64_t count,
                    std::string_view bytes) {
    return raw(key, GgufValueType::array, raw_bytes(type) + raw_bytes(count) + std::string(bytes));
  }

  GgufWriter& tensor(const GgufWrittenTensor& tensor) {
    tensors_.push_back(tensor);
    return *this;
  }
  GgufWriter& floats(std::string_view name, const std::vector<uint64_t>& extents,
                     const std::vector<float>& values) {
    std::string bytes;
    for (const float value : values) bytes += raw_bytes(value);
    return tensor({std::string(name), GgufType::f32, extents, bytes});
  }

  std::string file() const {
    std::string head = "GGUF" + raw_bytes(version);
    head += raw_bytes(num_tensors.value_or(tensors_.size()));
    head += raw_bytes(num_keys.value_or(keys_.size()));
    for (const std::string& key : keys_) head += key;
    std::string content;
    for (const GgufWrittenTensor& tensor : tensors_) {
      content.resize(aligned(content.size()));
      head += entry(tensor, tensor.offset.value_or(content.size()));
      content += tensor.bytes;
    }
    if (!tensors_.empty()) head.resize(aligned(head.size()));
    return head + content;
  }

 private:
  template <class T>
  static constexpr GgufValueType type_of() {
    if constexpr (std::same_as<T, bool>) return GgufValueType::boolean;
    if constexpr (std::same_as<T, float>) return GgufValueType::float32;
    if constexpr (std::same_as<T, double>) return GgufValueType::float64;
    if constexpr (std::same_as<T, int8_t>) return GgufValueType::int8;
    if constexpr (std::same_as<T, uint8_t>) return GgufValueType::uint8;
    if constexpr (std::same_as<T, int16_t>) return GgufValueType::int16;
    if constexpr (std::same_as<T, uint16_t>) return GgufValueType::uint16;
    if constexpr (std::same_as<T, int32_t>) return GgufValueType::int32;
    if constexpr (std::same_as<T, uint32_t>) return GgufValueType::uint32;
    if constexpr (std::same_as<T, int64_t>) return GgufValueType::int64;
    if constexpr (std::same_as<T, uint64_t>) return GgufValueType::uint64;
  }
  static std::string entry(const GgufWrittenTensor& tensor, uint64_t offset) {
    std::string bytes = text(tensor.name) + raw_bytes(static_cast<uint32_t>(tensor.extents.size()));
    for (auto at = tensor.extents.rbegin(); at != tensor.extents.rend(); ++at) {
      bytes += raw_bytes(*at);
    }
    return bytes + raw_bytes(tensor.type) + raw_bytes(offset);
  }
  size_t aligned(size_t size) const { return (size + alignment - 1) / alignment * alignment; }

  std::vector<std::string> keys_;  // encoded
  std::vector<GgufWrittenTensor> tensors_;
};

}  // namespace paceline
