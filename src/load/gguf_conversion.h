// Writes a GGUF model as the directory that Hugging Face's libraries read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "load/model_source.h"

namespace paceline {

struct GgufConversion {
  std::filesystem::path to;  // must not exist
  // Type of all written tensors. Nothing: plain ones keep theirs, and quantised ones become
  // float32, which holds their values exactly.
  std::optional<DType> dtype;
  // Called with the bytes written so far and in all; may throw to end the work.
  std::function<void(uint64_t done, uint64_t all)> progress = [](uint64_t, uint64_t) {};
};

struct ConvertedSizes {
  int64_t num_tensors = 0;
  int64_t parameters = 0;
  uint64_t bytes_before = 0;  // of weights
  uint64_t bytes_after = 0;
};

// Writes config.json, generation_config.json, the tokenizer's files, the chat template and
// model.safetensors. Holds one tensor at a time. The directory appears when it is whole, or not at
// all. Throws Error invalid when `source` is no GGUF file or `to` exists, and what reading and
// writing throw.
ConvertedSizes convert_gguf(const ModelSource& source, const GgufConversion& conversion);

}  // namespace paceline
