// Parses the header of a safetensors file and checks every claim before making views.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace paceline {

// The limit of the reference implementation (huggingface/safetensors, safetensors/src/tensor.rs),
// whose validation this follows.
constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsTensor {
  std::string name;
  DType dtype = DType::f32;
  Extents shape;
  // Inside the file, with exactly shape times dtype bytes. Not aligned.
  std::span<const std::byte> bytes;
  // The metadata of the tensor that torchao has taken apart, which this one is a part of:
  // M._weight_qdata of M.weight. Mostly empty.
  std::string note = {};
};

// The tensors of the safetensors file whose whole content is `file`, sorted by name.
// Checked: the header's length, its JSON, each key once, dtype, shape, bytes equal to shape times
// dtype; the tensors lie one after the other and cover the data exactly. Throws Error "WHERE: ..."
// naming the tensor or field: corrupt when one of these fails, unsupported for a dtype other than
// F32, F16, BF16 and U32 (packed codes) or for more than kMaxRank dimensions.
std::vector<SafetensorsTensor> parse_safetensors_header(std::span<const std::byte> file,
                                                        std::string_view where);

}  // namespace paceline
