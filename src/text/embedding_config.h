// EmbeddingConfig is how a model makes an embedding of a text, beside its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace paceline {

// The text is the user's message of a chat, a named prompt its system message, and the model's chat
// template writes both.
struct EmbeddingMessage {
  bool in_parts = false;  // content is [{"type": "text", "text": ...}], not a string
  bool add_generation_prompt = false;
  bool continue_final_message = false;
  std::string kwargs_json;  // further variables of the template, a JSON object; empty: none
  // Where a text is cut, what the template writes after it is kept.
  bool keeps_end = true;
};

// At how many tokens a text is cut, the special tokens around it included.
struct TextCut {
  int64_t max_tokens = 0;
  bool drops_begin = false;  // of the text, instead of its end
};

// How two embeddings are compared; distances are negative.
enum class Similarity : uint8_t { cosine, dot, euclidean, manhattan };

struct EmbeddingConfig {
  bool has_files = false;  // modules.json: the model is made for embeddings
  Pooling pooling = Pooling::last;
  bool pools_prompt = true;  // false: the tokens of a named prompt aren't pooled
  int64_t width = 0;         // elements of an embedding
  // Vectors are cut to it at last, after they were normalised; requests may ask for other sizes.
  std::optional<int64_t> cut_width;
  bool normalises = true;  // to length 1
  // Whether requests may ask for fewer elements (Kusupati et al., "Matryoshka Representation
  // Learning", 2022): any number of them, or one of `dimensions` if there are some.
  bool is_matryoshka = false;
  std::vector<int64_t> dimensions;
  // Prompts by name, each put in front of an input, and the name of the one that is used by
  // default.
  std::vector<std::pair<std::string, std::string>> prompts;
  std::optional<std::string> default_prompt;
  std::optional<EmbeddingMessage> message;  // nothing: a text is embedded as it is
  std::optional<TextCut> cut;               // nothing: a text too long for the context is refused
  Similarity similarity = Similarity::cosine;
};

}  // namespace paceline
