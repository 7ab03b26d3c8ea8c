// GenerationConfig holds the stop tokens and sampling defaults of a model's files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "paceline/options.h"

namespace paceline {

struct GenerationConfig {
  std::vector<int32_t> eos_tokens;  // load_model adds the tokenizer's
  std::optional<int32_t> bos_token;
  // Options with file_keys in kGenerationOptions; temperature 0 when do_sample is false.
  GenerateOptions defaults = {};
};

}  // namespace paceline
