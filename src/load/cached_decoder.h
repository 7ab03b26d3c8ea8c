// The decoder of a model: made of its files' weights, or of those that a cache has.
#pragma once

#include "layers/load_context.h"
#include "load/loaded_model.h"
#include "load/weight_stack.h"
#include "load/weights_cache.h"

namespace paceline {

// Sets model.decoder and model.is_quantised.
void make_decoder(LoadedModel& model, const LoadContext& context, const DecoderConfig& config);

// The same with the weights that the cache has, which model.prepared then holds; else the decoder
// is made and its weights are kept. `stack`, whose digest is taken, is what `context` reads. Sets
// model.weights_cache too.
void find_or_make_decoder(LoadedModel& model, WeightsCache& cache, const LoadContext& context,
                          const DecoderConfig& config, const WeightStack& stack);

}  // namespace paceline
