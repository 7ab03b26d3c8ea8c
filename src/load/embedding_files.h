// Reads how a model makes embeddings from its sentence-transformers files: modules.json, and the
// folders that it lists.
#pragma once

#include <set>
#include <string>

#include "base/json.h"
#include "base/model_files.h"
#include "kernels/backend.h"
#include "models/pooled_head.h"
#include "text/embedding_config.h"

namespace paceline {

struct EmbeddingParts {
  EmbeddingConfig config;
  PooledHead head;  // dense layers
};

struct EmbeddingSource {
  const ModelFiles& files;
  const Json& config_json;  // config.json
  int64_t hidden_size = 0;  // of pooled states
  bool has_chat_template = false;
};

// Throws Error unsupported for a module, a pooling mode or another value that isn't obeyed, and
// invalid or corrupt for unknown fields and malformed files, naming file and field.
EmbeddingParts read_embedding_parts(const EmbeddingSource& source, Backend& backend);

// The folders inside the model's own that modules.json lists, whether they exist or not.
std::set<std::string> embedding_folders(const ModelFiles& files);

}  // namespace paceline
