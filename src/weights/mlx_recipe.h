// MlxRecipe decides to how many bits each matrix of a model is quantised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/mlx_quantization.h"

namespace paceline {

// N of "layers.N." in a checkpoint's name or of "blk.N." in a GGUF file's, below 2^20; nothing
// otherwise.
std::optional<int64_t> layer_of(std::string_view name);

// Whether value and down projections of the layer get more bits, in mlx-lm's recipes and in
// llama.cpp's: those of the first and last eighth and every third between.
bool is_sensitive_layer(int64_t layer_index, int64_t num_layers);

// All matrices alike, or by one of the mixed recipes of mlx_lm.convert. These give more bits to the
// head, and to the value and down projections of sensitive layers.
class MlxRecipe {
 public:
  static MlxRecipe uniform(AffineFormat format) { return MlxRecipe(format, format.bits, 0); }
  // "mixed_2_6", "mixed_3_4", "mixed_3_6" or "mixed_4_6"; nothing for another name.
  static std::optional<MlxRecipe> mixed(std::string_view name, int64_t group_size,
                                        int64_t num_layers);

  // The format of all modules without another one in format_of().
  AffineFormat usual_format() const { return usual_; }
  AffineFormat format_of(std::string_view module) const;

 private:
  MlxRecipe(AffineFormat usual, int high_bits, int64_t num_layers)
      : usual_(usual), high_bits_(high_bits), num_layers_(num_layers) {}

  AffineFormat usual_;
  int high_bits_;
  int64_t num_layers_;
};

// One more than the largest N of "layers.N." in a name; 0 without one.
int64_t count_layers(const std::vector<CheckpointEntry>& entries);

}  // namespace paceline
