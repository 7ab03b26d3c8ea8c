// Writes a copy of a model's directory with quantised matrices, like mlx_lm.convert.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/thread_pool.h"
#include "load/calibration.h"
#include "weights/mlx_quantization.h"

namespace paceline {

struct QuantizeOptions {
  // A directory with config.json and safetensors, plain or in FP8 or another published format whose
  // matrices are expanded.
  std::filesystem::path from;
  std::filesystem::path to;  // must not exist
  AffineFormat format;
  std::string recipe;  // of MlxRecipe; empty: every matrix in `format`
  // Chooses scales and codes for what the matrices read of a text; null: as mlx.core.quantize does.
  Calibration* calibration = nullptr;
  uint64_t max_shard_bytes = uint64_t{5'000'000'000};
  // Called with the bytes read so far and in total; may throw to end the work.
  std::function<void(uint64_t done, uint64_t all)> progress = [](uint64_t, uint64_t) {};
};

struct QuantizedSizes {
  int64_t parameters = 0;
  int64_t quantized_parameters = 0;
  uint64_t bytes_before = 0;  // of weights
  uint64_t bytes_after = 0;

  double bits_per_weight() const {
    return 8 * static_cast<double>(bytes_after) / static_cast<double>(parameters);
  }
};

// Quantises the matrices of the text decoder whose rows are whole groups; all other tensors are
// copied, and so are the files of tokenizer and templates. Holds one tensor at a time. The
// directory appears only when complete. Throws Error invalid when the model is already quantised,
// no matrix fits the groups or `to` exists, numerical naming a tensor that isn't finite, and the
// errors of reading and writing.
QuantizedSizes quantize_model(const QuantizeOptions& options, ThreadPool& threads);

}  // namespace paceline
