// Reads a model's GenerationConfig from generation_config.json and config.json.
#pragma once

#include <cstdint>

#include "base/model_files.h"
#include "text/generation_config.h"

namespace paceline {

// Reads generation_config.json and, if missing there, the eos and bos ids of config.json; both
// files may be absent. Throws Error invalid naming file and field; ids must be in [0, vocab_size).
GenerationConfig read_generation_config(const ModelFiles& files, int64_t vocab_size);

}  // namespace paceline
