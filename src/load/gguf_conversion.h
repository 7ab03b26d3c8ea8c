// Writes a GGUF model as a directory for Hugging Face's libraries.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "load/model_source.h"
#include "models/gguf_architecture.h"
#include "tensor/tensor.h"

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
  int64_t quantized_parameters = 0;  // of a GGUF file that is written
  uint64_t bytes_before = 0;         // of weights
  uint64_t bytes_after = 0;
};

// Writes config.json, generation_config.json, the tokenizer's files, the chat template and
// model.safetensors. Holds one tensor at a time. The directory appears only when complete. Throws
// Error invalid when `source` isn't a GGUF file or `to` exists, and the errors of reading and
// writing.
ConvertedSizes convert_gguf(const ModelSource& source, const GgufConversion& conversion);

// The parts of it that other copies of a GGUF model share.

// The config for norms as Hugging Face stores them, with the chosen type.
Json converted_config(const GgufFile& file, std::optional<DType> dtype);
// Writes generation_config.json and the tokenizer's files.
void write_converted_files(const ModelSource& source, const std::filesystem::path& directory);
// What a GGUF file stores of the numbers that Hugging Face's files have.
enum class GgufForm : uint8_t {
  same,
  plus_one,  // 1 + w of a norm's w
  rate,      // -exp(x) of a logarithm x
};
// Of the tensor that checkpoint_name() has named so.
GgufForm gguf_form(const GgufArchitecture& architecture, std::string_view name);
// Turns numbers in float32 into Hugging Face's. Sums 1 + w were rounded when they were stored; the
// difference is exact, and adding 1 gives the stored bits again. Logarithms are rounded.
void undo_gguf_form(GgufForm form, const Tensor& numbers);
// Turns Hugging Face's numbers in float32 into the file's.
void apply_gguf_form(GgufForm form, const Tensor& numbers);

}  // namespace paceline
