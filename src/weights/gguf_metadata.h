// Typed access to the keys and values at the head of a GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// With the numbers of the file format (the GGUF specification, ggml/docs/gguf.md).
enum class GgufValueType : uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};

// One value, checked to lie inside the file. Views of the file.
struct GgufValue {
  std::string_view key;
  GgufValueType type = GgufValueType::uint8;
  GgufValueType element_type = GgufValueType::uint8;  // of an array
  uint64_t num_elements = 1;                          // of an array
  std::span<const std::byte> bytes;                   // a string without its length; all elements
};

// Every getter returns nothing for a missing key, and throws Error corrupt "FILE: KEY: ..." for a
// value of another type. Returned views live as long as the file.
class GgufMetadata {
 public:
  GgufMetadata() = default;
  // `values` have unique keys and valid bytes, as parse_gguf() delivers them.
  GgufMetadata(std::string file, std::vector<GgufValue> values);

  // The file's name, for messages.
  const std::string& file() const { return file_; }
  // Sorted by key.
  const std::vector<GgufValue>& values() const { return values_; }

  bool contains(std::string_view key) const { return find(key) != nullptr; }
  bool is_array(std::string_view key) const;

  // Any integer type, within int64.
  std::optional<int64_t> integer(std::string_view key) const;
  // Any float or integer type.
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;

  // Arrays. Booleans count as integers 0 and 1; numbers are floats or integers, rounded to float32.
  std::optional<std::vector<std::string_view>> strings(std::string_view key) const;
  std::optional<std::vector<int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<float>> numbers(std::string_view key) const;

 private:
  const GgufValue* find(std::string_view key) const;
  const GgufValue* find_array(std::string_view key, std::string_view expected) const;
  [[noreturn]] void fail(const GgufValue& value, std::string_view expected) const;

  std::string file_;
  std::vector<GgufValue> values_;
};

// The name of the value's type in messages: "uint32", "string", "array of float32".
std::string describe_type(const GgufValue& value);

}  // namespace paceline
