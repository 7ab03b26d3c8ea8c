// Makes a model's decoder from the weights of its files or of a weights cache.
#pragma once

#include "layers/load_context.h"
#include "load/loaded_model.h"
#include "load/weight_stack.h"
#include "load/weights_cache.h"

namespace paceline {

// Sets model.decoder and model.is_quantised.
void make_decoder(LoadedModel& model, const LoadContext& context, const DecoderConfig& config);

// The same with the weights of the cache, which model.prepared then holds. If the cache has none,
// it makes the decoder from the files and writes the weights to the cache. `context` reads from
// `stack`, which provides the digest. Sets model.weights_cache too.
void find_or_make_decoder(LoadedModel& model, WeightsCache& cache, const LoadContext& context,
                          const DecoderConfig& config, const WeightStack& stack);

}  // namespace paceline
