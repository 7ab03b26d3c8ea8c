// Arrays in safetensors files.
#include <algorithm>
#include <cstring>
#include <utility>

#include "arrays/array_state.h"
#include "autodiff/elementwise.h"
#include "autodiff/shapes.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

namespace paceline::arrays {
namespace {

constexpr std::string_view kReservedName = "__metadata__";

void check_name(const std::string& where, const std::string& name) {
  if (is_valid_utf8(name) && name != kReservedName) return;
  throw error_of(ErrorCode::invalid, "{}: an array named \"{}\": expected UTF-8, not {}", where,
                 replace_invalid_utf8(name), kReservedName);
}

bool is_array_dtype(paceline::DType dtype) {
  return is_float(dtype) || dtype == paceline::DType::i32 || dtype == paceline::DType::i8;
}

Array read_array(const std::string& where, const SafetensorsTensor& tensor) {
  if (!is_array_dtype(tensor.dtype)) {
    throw error_of(ErrorCode::unsupported,
                   "{}: tensor \"{}\" of {}: expected float32, float16, bfloat16, int32 or int8",
                   where, tensor.name, dtype_name(tensor.dtype));
  }
  if (tensor.dtype == paceline::DType::i8 &&
      std::ranges::any_of(tensor.bytes, [](std::byte b) { return b > std::byte{1}; })) {
    throw error_of(ErrorCode::unsupported,
                   "{}: tensor \"{}\" of int8 with other numbers than 0 and 1: expected a mask",
                   where, tensor.name);
  }
  autodiff::Array array(array_context(), tensor.dtype, tensor.shape);
  if (!tensor.bytes.empty()) {
    std::memcpy(array.writable().raw(), tensor.bytes.data(), tensor.bytes.size());
  }
  return wrapped(std::move(array));
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const NamedArrays& arrays) {
  const std::string where = "save_safetensors: " + path.string();
  std::vector<std::pair<const std::string*, autodiff::Array>> values;
  for (const auto& [name, array] : arrays) {
    check_name(where, name);
    if (array.is_empty()) {
      throw error_of(ErrorCode::invalid, "{}: an empty array named \"{}\": expected elements",
                     where, name);
    }
    values.emplace_back(&name, autodiff::stop_gradient(inner(where, array)));
  }
  SafetensorsWriter writer(path, "pt", NewFile::Existing::replace);
  for (const auto& [name, array] : values) {
    writer.add(*name, safetensors_dtype_name(array.dtype()), array.shape());
  }
  for (const auto& [name, array] : values) {
    writer.write(*name, autodiff::make_contiguous(array).tensor().bytes());
  }
  writer.finish();
}

NamedArrays load_safetensors(const std::filesystem::path& path) {
  const std::string where = "load_safetensors: " + path.string();
  const MappedFile file(path);
  NamedArrays arrays;
  for (const SafetensorsTensor& tensor : parse_safetensors_header(file.bytes(), path.string())) {
    arrays.emplace(tensor.name, read_array(where, tensor));
  }
  return arrays;
}

}  // namespace paceline::arrays
