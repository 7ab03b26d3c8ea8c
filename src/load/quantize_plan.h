// QuantizePlan says of each tensor of a model how it is quantised and in which file it will stand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/quantize_model.h"
#include "weights/checkpoint.h"

namespace paceline {

// One tensor of the source and what becomes of it.
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

// Throws what quantize_model() says of the model and the recipe.
QuantizePlan make_quantize_plan(const Checkpoint& source, const QuantizeOptions& options);

// "model.safetensors", or "model-00002-of-00003.safetensors".
std::string shard_name(size_t shard, size_t num_shards);

}  // namespace paceline
