// Every format in which weights may be stored, each with a tiny model whose matrices are in it.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "weights/gguf_type.h"
#include "weights/mlx_quantization.h"

namespace paceline::testing {

// One of the two lists is empty. Of several formats a model's matrices take turns.
struct StoredFormat {
  std::string name;                     // "gguf_Q4_K", "mlx_4_bits_64", "mlx_mixed"
  std::vector<GgufType> types;          // of a GGUF file
  std::vector<AffineFormat> groupings;  // of a directory as MLX writes it

  bool has_codes() const;  // not all its matrices are plain numbers
  bool is_mixed() const { return types.size() + groupings.size() > 1; }
};

void PrintTo(const StoredFormat& format, std::ostream* out);

// Each type and grouping that can be read, and all of each kind in one model.
const std::vector<StoredFormat>& stored_formats();
// All of them; in a sanitized build every sixth, of which PACELINE_SEED says where to begin, unless
// PACELINE_TEST_SCALE=full.
std::vector<StoredFormat> formats_to_run();

// The path of a model in that format, without a tokenizer, its ids below 256. It is written when it
// is first asked for, and removed when the program ends.
std::string stored_model(const StoredFormat& format);

}  // namespace paceline::testing
