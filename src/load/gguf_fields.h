// GgufFields reads the keys of a file's architecture: a number, or a list with the same number for
// every layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/gguf_architecture.h"
#include "weights/gguf_file.h"

namespace paceline {

// Keys are given without the architecture's name. Errors are "FILE: KEY: ...".
class GgufFields {
 public:
  // Both must outlive it.
  GgufFields(const GgufMetadata& metadata, const GgufArchitecture& architecture)
      : metadata_(metadata), architecture_(architecture) {}

  const GgufMetadata& metadata() const { return metadata_; }
  const GgufArchitecture& architecture() const { return architecture_; }
  std::string key(std::string_view name) const;  // as in the file: "ARCHITECTURE.block_count"

  std::optional<int64_t> integer(std::string_view name) const;
  // A number, or a list of one number per layer, which must then be equal.
  std::optional<int64_t> layer_integer(std::string_view name) const;
  // A float32 becomes the shortest decimal number that reads back to it: 1e-06, not 9.99999997e-07.
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string_view> string(std::string_view name) const;

  // Throws Error corrupt when the key is missing or its value isn't from 1 to 1 << 24.
  int64_t size(std::string_view name) const;
  int64_t layer_size(std::string_view name) const;

  [[noreturn]] void corrupt(std::string_view name, std::string_view what) const;
  [[noreturn]] void unsupported(std::string_view name, std::string_view what) const;

 private:
  int64_t checked_size(std::string_view name, std::optional<int64_t> value) const;

  const GgufMetadata& metadata_;
  const GgufArchitecture& architecture_;
};

// See GgufFields::number.
double shortest_decimal(double value);

}  // namespace paceline
