// Writes a model as a GGUF file that llama.cpp reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/thread_pool.h"
#include "load/calibration.h"
#include "load/gguf_tensor_plan.h"
#include "load/model_source.h"
#include "weights/checkpoint.h"

namespace paceline {

struct GgufWriting {
  std::filesystem::path to;  // must not exist
  GgufFileType type = GgufFileType::as_stored;
  // Weighs the errors of the K types by what the matrices read of a text; null: all are equal.
  const Calibration* calibration = nullptr;
  // Called with the bytes written so far and in total; may throw to end the work.
  std::function<void(uint64_t done, uint64_t all)> progress = [](uint64_t, uint64_t) {};
};

// Whether an output of this name is a GGUF file.
bool is_gguf_name(const std::filesystem::path& path);

// Writes configuration, tokenizer, chat template and weights. Before any weight, the header is read
// back as a model is, so that a file either describes the same computation and gives the same
// tokens or isn't written. Holds one tensor at a time; the file appears only when it is complete.
// Throws Error unsupported naming what files can't hold, invalid when `to` exists, numerical naming
// a tensor whose numbers aren't finite in their type, and the errors of reading and writing.
ConvertedSizes write_gguf(const ModelSource& source, const GgufWriting& writing,
                          ThreadPool& threads);

// The same with other weights under the source's names.
ConvertedSizes write_gguf(const ModelSource& source, Checkpoint& weights,
                          const GgufWriting& writing, ThreadPool& threads);

}  // namespace paceline
