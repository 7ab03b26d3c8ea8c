// PublishedQuantisation is what a model's small files say of the tool that quantised its weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/model_files.h"
#include "tensor/tensor.h"

namespace paceline {

// Most of a format is in the names, dtypes and shapes of the tensors; this is the rest.
struct PublishedQuantisation {
  std::string method;  // "gptq", "fp8", ...: for messages
  // The widths of codes that the config names: they decide where shapes allow several.
  std::vector<int64_t> bits = {};
  // Rows and columns that share a scale, for the last, smaller blocks.
  std::optional<Extents> block = {};
  bool words_are_awq = false;  // `qweight` holds AWQ's order of codes, not GPTQ's
  int gptq_zero_shift = 1;     // what is added to GPTQ's zero points: 0 in `gptq_v2`, AutoRound's
  DType dtype = DType::bf16;   // of the values of matrices, from config.json
  // Whether matrices of E4M3 stay packed; otherwise they are expanded. No file says so.
  bool keeps_float8 = false;

  // Reads config.json (`quantization_config`, or MLX's `quantization` with a mode other than
  // affine), else quantize_config.json, quant_config.json or hf_quant_config.json. Nothing where
  // none of them names a method. Throws Error unsupported for a method that isn't read, and
  // invalid for a malformed file.
  static std::optional<PublishedQuantisation> find(const ModelFiles& files);

  // All that values depend on, in one line.
  std::string summary() const;
};

}  // namespace paceline
