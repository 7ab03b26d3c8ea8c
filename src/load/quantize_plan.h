// QuantizePlan lists each tensor of a model with its format and the file it is written to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/quantize_model.h"
#include "weights/checkpoint.h"

namespace paceline {

// One tensor of the source and its output format.
struct QuantizeStep {
  CheckpointEntry entry;
  std::optional<AffineFormat> format;  // nothing: copied
  size_t shard = 0;

  std::string module() const;  // of a matrix: its name without ".weight"
  int64_t num_elements() const;
  uint64_t bytes_before() const;
  uint64_t bytes_after() const;
};

struct QuantizePlan {
  std::vector<QuantizeStep> steps;
  size_t num_shards = 1;
  AffineFormat usual;
  QuantizedSizes sizes;
};

// Throws the errors of quantize_model() about the model and the recipe.
QuantizePlan make_quantize_plan(const Checkpoint& source, const QuantizeOptions& options);

// "model.safetensors", or "model-00002-of-00003.safetensors".
std::string shard_name(size_t shard, size_t num_shards);

}  // namespace paceline
