// GenerationConfig is what a model's own files say about stops and sampling.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "paceline/options.h"

namespace paceline {

struct GenerationConfig {
  std::vector<int32_t> eos_tokens;  // load_model adds those that the tokenizer knows
  std::optional<int32_t> bos_token;
  // Options that have file_keys in kGenerationOptions; temperature 0 when do_sample is false.
  GenerateOptions defaults = {};
};

}  // namespace paceline
