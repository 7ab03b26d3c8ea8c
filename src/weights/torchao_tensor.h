// TorchaoTensor is what a safetensors file's metadata says of a tensor that torchao has taken
// apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace paceline {

struct TorchaoTensor {
  std::string type;                  // its class: "Int4Tensor"
  std::optional<Extents> shape;      // of the whole tensor, which its parts may pad
  std::string element;               // `elem_dtype` of MXTensor: "float8_e4m3fn"; else empty
  bool has_swizzled_scales = false;  // in tiles of 128 x 4

  // Reads the JSON of torchao's flatten_tensor_state_dict()
  // (torchao/prototype/safetensors/safetensors_utils.py). Throws Error corrupt "WHERE: ...".
  static TorchaoTensor parse(std::string_view json, std::string_view where);
};

}  // namespace paceline
