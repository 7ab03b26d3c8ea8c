// A fingerprint identifies everything that the bits of a model's answers depend on.
#pragma once

#include <string>

#include "base/model_files.h"
#include "base/siphash.h"
#include "load/loaded_model.h"

namespace paceline {

// "fp_" and 16 hex digits of a hash of: the weights' digest, the model's files (config, generation
// defaults, tokenizer, chat template), the program's build, the instruction set, the types of the
// weights, the activations and the cache, --quantize, --max-kv-size and --spec-accept rejection.
// Two servers with the same fingerprint answer the same request with the same bits; with rejection,
// only at temperature 0. Threads, batches, cache sizes and other options of speculation aren't
// included.
std::string model_fingerprint(const LoadedModel& model, const ModelFiles& files,
                              const LoadOptions& options, Hash128 weights);

}  // namespace paceline
