// Reads how sentence-transformers' Transformer module makes tokens of a text.
#pragma once

#include "base/json.h"
#include "base/model_files.h"
#include "text/embedding_config.h"

namespace paceline {

// Sets `message` and `cut` as sentence_bert_config.json, tokenizer_config.json and config.json say.
// Throws Error invalid for an unknown field, unsupported for a value that isn't obeyed, naming
// both.
void read_embedding_text(const ModelFiles& files, const Json& config_json, EmbeddingConfig& config);

}  // namespace paceline
