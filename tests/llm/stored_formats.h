// Every format of stored weights, each with a tiny model.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "weights/gguf_type.h"
#include "weights/mlx_quantization.h"

namespace paceline::testing {

// One of the two lists is empty. A model's matrices take turns with several formats.
struct StoredFormat {
  std::string name;                     // "gguf_Q4_K", "mlx_4_bits_64", "mlx_mixed"
  std::vector<GgufType> types;          // of a GGUF file
  std::vector<AffineFormat> groupings;  // of a directory as MLX writes it

  bool has_codes() const;  // not all its matrices are plain numbers
  bool is_mixed() const { return types.size() + groupings.size() > 1; }
};

void PrintTo(const StoredFormat& format, std::ostream* out);

// Each readable type and grouping, and all of each kind in one model.
const std::vector<StoredFormat>& stored_formats();
// All of them; in a sanitized build every sixth, beginning at PACELINE_SEED, unless
// PACELINE_TEST_SCALE=full.
std::vector<StoredFormat> formats_to_run();

// The path of a model in that format, without a tokenizer, with ids below 256. It is written on
// first use, and removed when the program ends.
std::string stored_model(const StoredFormat& format);

}  // namespace paceline::testing
