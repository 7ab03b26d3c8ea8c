#include "load/cached_decoder.h"

#include "base/error.h"
#include "kernels/backend.h"
#include "models/decoder.h"
#include "prepared/prepared_file.h"

namespace paceline {
namespace {

// Whether the cache has weights, and they fit the model.
bool find_decoder(LoadedModel& model, WeightsCache& cache, LoadContext context,
                  const DecoderConfig& config) {
  model.prepared = cache.find();
  if (model.prepared == nullptr) return false;
  context.prepared = model.prepared.get();
  try {
    model.decoder = std::make_unique<Decoder>(context, config);
    model.is_quantised = model.prepared->is_quantised();
    return true;
  } catch (const Error& error) {
    model.prepared.reset();
    cache.refuse(error.what());
    return false;
  }
}

void make_and_store_decoder(LoadedModel& model, WeightsCache& cache, LoadContext context,
                            const DecoderConfig& config, const WeightStack& stack) {
  PreparedWeights made;
  context.made = &made;
  make_decoder(model, context, config);
  made.num_parameters = model.decoder->num_parameters();
  made.is_quantised = model.is_quantised;
  cache.store(made, *stack.digest());
}

}  // namespace

void make_decoder(LoadedModel& model, const LoadContext& context, const DecoderConfig& config) {
  model.decoder = std::make_unique<Decoder>(context, config);
  model.is_quantised = context.weights.has_read_grouped();
}

void find_or_make_decoder(LoadedModel& model, WeightsCache& cache, const LoadContext& context,
                          const DecoderConfig& config, const WeightStack& stack) {
  if (!find_decoder(model, cache, context, config)) {
    make_and_store_decoder(model, cache, context, config, stack);
  }
  model.weights_cache = cache.use();
}

}  // namespace paceline
