// GenerationConfig holds the stops and sampling defaults of a model's own files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "paceline/options.h"

namespace paceline {

struct GenerationConfig {
  std::vector<int32_t> eos_tokens;  // load_model adds the tokenizer's
  std::optional<int32_t> bos_token;
  // Options that have file_keys in kGenerationOptions; temperature 0 when do_sample is false.
  GenerateOptions defaults = {};
};

}  // namespace paceline
