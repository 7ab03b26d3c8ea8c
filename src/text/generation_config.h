// GenerationConfig holds what a model's files say about generating: stop tokens, defaults, bans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "paceline/options.h"

namespace paceline {

struct GenerationConfig {
  std::vector<int32_t> eos_tokens;  // load_model adds the tokenizer's
  std::optional<int32_t> bos_token;
  // Options with file_keys in kGenerationOptions; temperature 0 when do_sample is false.
  GenerateOptions defaults = {};
  // Of prompt and output together, where nothing says how long the output is.
  std::optional<int64_t> min_length, max_length;
  std::vector<std::vector<int32_t>> banned;  // no token is drawn that completes one of them
  std::vector<int32_t> not_first;            // tokens that aren't drawn as the first one
  std::vector<std::string> stop_strings;     // end an output like eos_tokens
  // Why nothing can be generated as the files ask for it, naming file and field; empty: it can.
  std::string problem;
  std::vector<std::string> notes;  // what is obeyed in another way than it stands there
};

}  // namespace paceline
