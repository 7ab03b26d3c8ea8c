// Writes a GGUF model as a directory for Hugging Face's libraries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "load/model_source.h"

namespace paceline {

struct GgufConversion {
  std::filesystem::path to;  // must not exist
  // The type of all written tensors. Nothing: plain ones keep their type, and quantised ones become
  // float32, which holds their values exactly.
  std::optional<DType> dtype;
  // Called with the bytes written so far and in total; may throw to end the work.
  std::function<void(uint64_t done, uint64_t all)> progress = [](uint64_t, uint64_t) {};
};

struct ConvertedSizes {
  int64_t num_tensors = 0;
  int64_t parameters = 0;
  uint64_t bytes_before = 0;  // of weights
  uint64_t bytes_after = 0;
};

// Writes config.json, generation_config.json, the tokenizer's files, the chat template and
// model.safetensors. Holds one tensor at a time. The directory appears only when complete. Throws
// Error invalid when `source` isn't a GGUF file or `to` exists, and the errors of reading and
// writing.
ConvertedSizes convert_gguf(const ModelSource& source, const GgufConversion& conversion);

}  // namespace paceline
