// GgufTensorPlan lists each tensor of a GGUF file: its type, and where its numbers come from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/gguf_conversion.h"
#include "load/gguf_model.h"
#include "models/decoder_config.h"
#include "weights/checkpoint.h"
#include "weights/gguf_type.h"

namespace paceline {

enum class GgufFileType : uint8_t { as_stored, f32, f16, bf16, q8_0, q4_0, q4_k_m };

// "f32", "f16", "bf16", "q8_0", "q4_0", "q4_k_m", in small or large letters; nothing for another
// name.
std::optional<GgufFileType> parse_gguf_file_type(std::string_view name);
// Of general.file_type: llama.cpp's LLAMA_FTYPE.
uint32_t gguf_file_type_number(GgufFileType type, DType stored);

// Rows of a tensor of the checkpoint; a vector is a row for each element.
struct GgufPart {
  std::string name;
  Extents shape;  // of the checkpoint's tensor
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t row_length = 1;
};

struct PlannedGgufTensor {
  GgufTensorName name;
  GgufType type = GgufType::f32;
  Extents extents;  // as in the file
  GgufForm form = GgufForm::same;
  std::vector<GgufPart> parts;  // one, or those of a stack
};

struct GgufTensorPlan {
  std::vector<PlannedGgufTensor> tensors;
  ConvertedSizes sizes;
};

// `weights` has the tensors as a model reads them. In q4_k_m, q4_0 and q8_0 matrices have the types
// that llama.cpp's llama-quantize gives them; norms, routers and vectors aren't quantised. Throws
// Error unsupported naming a tensor that files of the architecture can't have.
GgufTensorPlan plan_gguf_tensors(Checkpoint& weights, const DecoderConfig& config,
                                 const GgufArchitecture& architecture, GgufFileType type);

}  // namespace paceline
