// EmbeddingConfig is how a model makes an embedding of a text, beside its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace paceline {

struct EmbeddingConfig {
  bool has_files = false;  // modules.json: the model is made for embeddings
  Pooling pooling = Pooling::last;
  int64_t width = 0;       // elements of an embedding
  bool normalises = true;  // to length 1
  // Whether requests may ask for fewer elements (Kusupati et al., "Matryoshka Representation
  // Learning", 2022): any number of them, or one of `dimensions` if there are some.
  bool is_matryoshka = false;
  std::vector<int64_t> dimensions;
  // Prompts by name, each put in front of an input, and the name of the one that is used by
  // default.
  std::vector<std::pair<std::string, std::string>> prompts;
  std::optional<std::string> default_prompt;
};

}  // namespace paceline
