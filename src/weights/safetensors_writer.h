// SafetensorsWriter writes one safetensors file tensor by tensor, never holding more than a piece.
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

namespace paceline {

// First add() every tensor, then write() their bytes in the same order, then finish(). The same
// calls make the same file. Calls out of this order are bugs of the program.
class SafetensorsWriter {
 public:
  // `format` is written to the metadata: "pt" or "mlx". Errors are
  // NewFile's; without finish() no file is left.
  explicit SafetensorsWriter(std::filesystem::path path, std::string_view format = "pt",
                             NewFile::Existing existing = NewFile::Existing::refuse);

  // `dtype` as the format names it: F32, F16, BF16, U32 and the other whole-byte ones. Throws Error
  // invalid when the name was added before, or `shape` needs 2^63 bytes or more.
  void add(std::string_view name, std::string_view dtype, const Extents& shape);
  // The next bytes of a tensor, elements little-endian in row-major order. A tensor may come in
  // pieces; those without elements need no call.
  void write(std::string_view name, std::span<const std::byte> bytes);
  // Call it after all bytes: syncs the file to the disk and names it.
  void finish();

  // Bytes of all tensors added so far, without the header.
  uint64_t data_bytes() const;

 private:
  struct Entry {
    std::string name;
    std::string_view dtype;
    Extents shape;
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  std::string header() const;

  NewFile file_;
  std::string format_;
  std::vector<Entry> entries_;
  std::unordered_set<std::string> names_;
  bool header_written_ = false;
  size_t current_ = 0;    // the entry being written
  uint64_t written_ = 0;  // bytes of data
};

// "F32", "F16", "BF16", "I32" or "U32".
std::string_view safetensors_dtype_name(DType dtype);

}  // namespace paceline
