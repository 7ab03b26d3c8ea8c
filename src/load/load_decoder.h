// Loads a model's decoder: the weights of its files as kernels read them, or those of a cache.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/siphash.h"
#include "load/loaded_model.h"

namespace paceline {

inline constexpr std::string_view kConfig = "config.json";

// The type of the largest tensor, or the config's for dummy weights.
DType stored_dtype(const std::vector<CheckpointEntry>& entries, const DecoderConfig& config);

// Sets model.decoder, prepared, weights_cache, weight_dtype and is_quantised; the model has its
// machine. Returns the digest of the weights, if it was taken.
std::optional<Hash128> load_decoder(LoadedModel& model, const ModelSource& source,
                                    const LoadOptions& options);

}  // namespace paceline
