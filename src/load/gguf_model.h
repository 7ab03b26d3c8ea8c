// Presents a GGUF file as a model: the texts of a Hugging Face directory, and weights under its
// names.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/model_files.h"
#include "load/gguf_config.h"
#include "load/gguf_mixers.h"
#include "models/gguf_architecture.h"
#include "tensor/memory.h"
#include "weights/checkpoint.h"
#include "weights/gguf_checkpoint.h"
#include "weights/gguf_file.h"

namespace paceline {

// config.json, generation_config.json, if the file has a tokenizer tokenizer.json and
// tokenizer_config.json with the chat templates, and if it says how states are pooled modules.json
// and 1_Pooling/config.json. They are made when they are read, which throws the
// errors of gguf_config.h and gguf_tokenizer.h.
ModelFiles gguf_model_files(std::shared_ptr<const GgufFile> file);

// The sizes on which the orders of rows and columns depend.
struct GgufSizes {
  GgufHeads heads;                        // where rotary pairs are interleaved
  std::optional<GgufDeltaNet> delta_net;  // where value heads stand in turns
};

// How a file has a tensor; nothing for what isn't a weight.
std::optional<GgufTensorName> gguf_tensor_name(const GgufArchitecture& architecture,
                                               const GgufSizes& sizes, std::string_view file_name);

// Throws Error as find_gguf_architecture() and make_gguf_checkpoint() do. `memory` must outlive it.
std::unique_ptr<Checkpoint> open_gguf_weights(std::shared_ptr<const GgufFile> file, Memory& memory);

}  // namespace paceline
