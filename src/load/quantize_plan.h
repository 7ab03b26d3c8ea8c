// QuantizePlan lists each tensor of a model with its format and the file it is written to.
#pragma once

#include <vector>

#include "load/model_copy.h"
#include "load/quantize_model.h"
#include "weights/checkpoint.h"

namespace paceline {

struct QuantizePlan {
  std::vector<WrittenTensor> tensors;  // with the names, shapes and types of the source
  size_t num_shards = 1;
  AffineFormat usual;
  QuantizedSizes sizes;
};

// Throws the errors of quantize_model() about the model and the recipe.
QuantizePlan make_quantize_plan(const Checkpoint& source, const QuantizeOptions& options);

}  // namespace paceline
