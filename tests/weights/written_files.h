// Files for the tests of weights/: safetensors files, temporary directories.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json_writer.h"
#include "tests/expect_error.h"
#include "tests/test_directory.h"

namespace paceline {

struct FileTensor {
  std::string name;
  std::string dtype = "F32";
  std::vector<uint64_t> shape;
  std::string bytes;
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Concatenates length, header and data, valid or not.
inline std::string safetensors_file(std::string_view header, std::string_view data_bytes = {}) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file.push_back(static_cast<char>((uint64_t{header.size()} >> (8 * i)) & 0xFF));
  }
  return file.append(header).append(data_bytes);
}

// A valid file of these tensors, in this order; `padding` spaces follow the header.
inline std::string safetensors_file(const std::vector<FileTensor>& tensors, size_t padding = 0) {
  std::string header, content;
  JsonWriter json(header);
  json.begin_object();
  for (const FileTensor& tensor : tensors) {
    json.key(tensor.name).begin_object().member("dtype", tensor.dtype).key("shape").begin_array();
    for (const uint64_t size : tensor.shape) json.unsigned_integer(size);
    json.end_array().key("data_offsets").begin_array();
    json.unsigned_integer(content.size()).unsigned_integer(content.size() + tensor.bytes.size());
    json.end_array().end_object();
    content += tensor.bytes;
  }
  json.end_object();
  return safetensors_file(header + std::string(padding, ' '), content);
}

inline std::span<const std::byte> as_bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Changes one byte to another value, chosen by `draw`.
inline void change_byte(std::string& content, size_t at, uint32_t draw) {
  content[at] = static_cast<char>(content[at] ^ static_cast<char>(1 + draw % 255));
}

}  // namespace paceline
