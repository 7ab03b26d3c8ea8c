// Says that a model can't fit in memory before its weights are read.
#pragma once

#include <string>

#include "load/loaded_model.h"
#include "load/model_source.h"
#include "models/decoder_config.h"
#include "weights/checkpoint.h"

namespace paceline {

// The tensors as the files have them, and by how many bytes they grow when they are read.
struct StoredWeights {
  const Checkpoint& tensors;
  uint64_t added_bytes = 0;
};

// What is kept of a model's weights in memory.
struct KeptWeights {
  double bytes = 0;
  double elements = 0;
  bool is_quantised = false;  // by the files, or by --quantize
};

// `dtype` is that of plain weights.
KeptWeights kept_weights(const ModelSource& source, const StoredWeights& stored,
                         const DecoderConfig& config, DType dtype, const LoadOptions& options);

// "1.5 GiB".
std::string size_figure(double bytes);

// Throws Error exhausted when the weights alone, as they will be kept, are more than the free
// memory of the machine or of the GPU, or than --memory-limit: with both sizes, and with what
// --quantize would need where that fits.
void check_weights_fit(const LoadedModel& model, const ModelSource& source,
                       const StoredWeights& stored, const DecoderConfig& config,
                       const LoadOptions& options);

}  // namespace paceline
