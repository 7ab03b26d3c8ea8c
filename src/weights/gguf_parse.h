// Parses the header of a GGUF file. Every count, length and offset is checked before it is used, so
// the results need no further checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"
#include "weights/gguf_metadata.h"
#include "weights/gguf_type.h"

namespace paceline {

constexpr uint64_t kMaxGgufMetadataBytes = uint64_t{256} << 20;  // all before the data
constexpr uint64_t kMaxGgufKeys = 65'536;
constexpr uint64_t kMaxGgufTensors = 65'536;
constexpr uint64_t kMaxGgufNameBytes = 1024;  // of a key or a tensor
constexpr uint64_t kMaxGgufStringBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxGgufArrayElements = uint64_t{4} << 20;
constexpr uint32_t kMaxGgufDimensions = 4;
constexpr uint64_t kMinGgufAlignment = 8;
constexpr uint64_t kMaxGgufAlignment = 4096;

struct GgufTensorInfo {
  std::string name;
  GgufType type = GgufType::f32;
  Extents extents;  // row-major: the reverse of what the file lists; none is 0
  // Inside the file, without overlap with other tensors, and exactly as long as type and extents
  // require. Aligned within the file to 8 bytes or more.
  std::span<const std::byte> bytes;
};

struct GgufContents {
  GgufMetadata metadata;
  std::vector<GgufTensorInfo> tensors;  // sorted by name
};

// Parses a whole file; the result has views of it. Throws Error "WHERE: ..." naming the key, tensor
// or field: corrupt when it contradicts itself, is truncated or exceeds a limit above; unsupported
// for a version other than 2 and 3, for big-endian files, arrays of arrays, and tensor types that
// can't be read.
GgufContents parse_gguf(std::span<const std::byte> file, std::string_view where);

}  // namespace paceline
