// Says that a model can't fit in memory before its weights are read.
#pragma once

#include "load/loaded_model.h"
#include "load/model_source.h"
#include "models/decoder_config.h"
#include "weights/checkpoint.h"

namespace paceline {

// `stored` has the tensors as the files have them. Throws Error exhausted when the weights alone,
// as they will be kept, are more than the free memory of the machine or of the GPU, or than
// --memory-limit: with both sizes, and with what --quantize would need where that fits.
void check_weights_fit(const LoadedModel& model, const ModelSource& source,
                       const Checkpoint& stored, const DecoderConfig& config,
                       const LoadOptions& options);

}  // namespace paceline
