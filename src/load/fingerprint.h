// A fingerprint names all that decides the bits of a model's answers.
#pragma once

#include <string>

#include "base/model_files.h"
#include "base/siphash.h"
#include "load/loaded_model.h"

namespace paceline {

// "fp_" and 16 hex digits, over: the weights' digest, what the model's files say (config,
// generation defaults, tokenizer, chat template), the program's build, the instruction set, the
// weights' and the cache's types, how weights were quantised while they were loaded, and windows
// that were asked for. Of two servers with the same one, the same request gets the same bits;
// threads, batches and cache sizes are not in it.
std::string model_fingerprint(const LoadedModel& model, const ModelFiles& files,
                              const LoadOptions& options, Hash128 weights);

}  // namespace paceline
