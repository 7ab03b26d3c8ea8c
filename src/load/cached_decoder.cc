#include "load/cached_decoder.h"

#include <utility>

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

// Packs each weight into the cache's file, one after another. Returns whether the file is there.
bool write_weights(WeightsCache& cache, LoadContext context, const DecoderConfig& config,
                   const WeightStack& stack) {
  const auto writer = cache.begin(stack.top());
  if (writer == nullptr) return false;
  context.written = writer.get();
  PreparedTable facts;
  try {
    facts.weights.num_parameters = Decoder(context, config).num_parameters();
  } catch (const Error& error) {
    if (!writer->has_failed()) throw;
    cache.fail(error.what());
    return false;
  }
  facts.digest = *stack.digest();
  facts.weights.is_quantised = context.weights.has_read_grouped();
  return cache.finish(*writer, std::move(facts));
}

}  // namespace

void make_decoder(LoadedModel& model, const LoadContext& context, const DecoderConfig& config) {
  model.decoder = std::make_unique<Decoder>(context, config);
  model.is_quantised = context.weights.has_read_grouped();
}

void find_or_make_decoder(LoadedModel& model, WeightsCache& cache, const LoadContext& context,
                          const DecoderConfig& config, const WeightStack& stack) {
  const auto find = [&] { return find_decoder(model, cache, context, config); };
  if (!find() && !(write_weights(cache, context, config, stack) && find())) {
    make_decoder(model, context, config);
  }
  model.weights_cache = cache.use();
}

}  // namespace paceline
