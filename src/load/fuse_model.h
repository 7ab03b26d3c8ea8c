// Writes a model and a LoRA adapter as one model, like mlx_lm.fuse and PEFT's merge_and_unload().
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "adapters/adapter.h"
#include "base/thread_pool.h"
#include "load/gguf_tensor_plan.h"
#include "load/model_source.h"
#include "weights/mlx_quantization.h"

namespace paceline {

struct FuseOptions {
  std::filesystem::path to;  // must not exist
  // The type of plain tensors and of scales. Nothing: plain ones keep their type, and matrices that
  // were quantised become bfloat16.
  std::optional<DType> dtype;
  // Matrices whose rows are whole groups are written so. Nothing: as plain numbers.
  std::optional<AffineFormat> format;
  // `to` is a GGUF file with matrices of this type. Nothing: a directory.
  std::optional<GgufFileType> gguf_type;
  uint64_t max_shard_bytes = uint64_t{5'000'000'000};
  // Called with the bytes written so far and in total; may throw to end the work.
  std::function<void(uint64_t done, uint64_t all)> progress = [](uint64_t, uint64_t) {};
};

struct FusedSizes {
  int64_t num_fused = 0;  // matrices
  int64_t parameters = 0;
  int64_t quantized_parameters = 0;
  uint64_t bytes_after = 0;  // of weights
};

// Each matrix W with a pair becomes W + scale * B A, computed in float32 and rounded once, or
// quantised. W is what the base's format says, dequantised. Matrices without a pair that MLX packed
// stay packed as they are, unless there is a `dtype` and no `format`; those of GGUF and of other
// tools are written as plain numbers. A head that is the embedding and has a pair becomes a matrix
// of its own. Holds one matrix at a time. The directory appears only when complete. Throws Error
// invalid when `to` exists or no matrix fits the groups, numerical naming a tensor whose numbers
// aren't finite or exceed their type, and the errors of reading and writing.
FusedSizes fuse_model(const ModelSource& source, const Adapter& adapter, const FuseOptions& options,
                      ThreadPool& threads);

}  // namespace paceline
