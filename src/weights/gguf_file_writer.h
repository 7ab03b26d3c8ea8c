// Writes GGUF files: GgufHeader has the keys and the places of the tensors, GgufFileWriter the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/new_file.h"
#include "tensor/tensor.h"
#include "weights/gguf_metadata.h"
#include "weights/gguf_type.h"

namespace paceline {

// Version 3, little-endian, with data on multiples of 32. A key or a tensor that is
// added twice is a bug of the program.
class GgufHeader {
 public:
  void add_string(std::string_view key, std::string_view value);
  void add_boolean(std::string_view key, bool value);
  void add_size(std::string_view key, uint32_t value);
  void add_integer(std::string_view key, int32_t value);
  void add_number(std::string_view key, float value);
  void add_strings(std::string_view key, std::span<const std::string> values);
  void add_integers(std::string_view key, std::span<const int32_t> values);
  void add_booleans(std::string_view key, const std::vector<bool>& values);
  void add_numbers(std::string_view key, std::span<const float> values);
  // As another file has it.
  void add_copy(const GgufValue& value);
  bool has_key(std::string_view key) const { return names_.contains(std::string(key)); }

  // The next tensor; `extents` are row-major. Throws Error invalid "WHERE: ..." when all would have
  // 2^63 bytes or more.
  void add_tensor(std::string_view name, GgufType type, const Extents& extents,
                  std::string_view where);

  size_t num_tensors() const { return tensors_.size(); }
  uint64_t tensor_begin(size_t index) const { return tensors_[index].begin; }
  uint64_t tensor_bytes(size_t index) const { return tensors_[index].bytes; }
  // Of all tensors, with the gaps between them and after the last.
  uint64_t data_bytes() const { return data_bytes_; }
  // All before the data.
  std::string bytes() const;

 private:
  struct Entry {
    std::string encoded;
    uint64_t begin = 0;
    uint64_t bytes = 0;
  };

  void add_key(std::string_view key, GgufValueType type, std::string_view encoded);
  void add_array(std::string_view key, GgufValueType type, size_t count, std::string_view encoded);

  std::vector<std::string> keys_;  // encoded
  std::unordered_set<std::string> names_;
  std::vector<Entry> tensors_;
  uint64_t data_bytes_ = 0;
};

// Tensors are written in the order of the header, each as a whole or in pieces.
class GgufFileWriter {
 public:
  // `header` must outlive it. Errors are NewFile's; without finish() no file is left.
  GgufFileWriter(std::filesystem::path path, const GgufHeader& header);

  // The next bytes of the current tensor.
  void write(std::span<const std::byte> bytes);
  // After all bytes: syncs the file to the disk and names it.
  void finish();

 private:
  void skip_gap(uint64_t to);

  NewFile file_;
  const GgufHeader& header_;
  size_t current_ = 0;
  uint64_t written_ = 0;  // of the data
};

}  // namespace paceline
