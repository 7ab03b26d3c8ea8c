// MlxQuantization is the format of each module's weights packed by MLX, from config.json.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/model_files.h"

namespace paceline {

// Codes of `bits` bits; each group of `group_size` consecutive elements of a row has a scale and a
// bias.
struct AffineFormat {
  int bits = 4;             // 2, 3, 4, 5, 6 or 8
  int64_t group_size = 64;  // 32, 64 or 128

  bool operator==(const AffineFormat&) const = default;
};

bool is_affine_bits(int64_t bits);
bool is_affine_group_size(int64_t size);

// The field {"group_size": 64, "bits": 4, "mode": "affine", MODULE: {...} | false, ...}, in which
// an object under a module's name ("model.layers.0.mlp.down_proj") overrides the common format.
class MlxQuantization {
 public:
  // Reads `quantization`, or else `quantization_config` if it names no other tool (`quant_method`);
  // nothing when the config has neither. Errors begin with "WHERE: " and the field: unsupported for
  // a mode, bits and groups that MLX doesn't have, invalid for anything else.
  static std::optional<MlxQuantization> find(const Json& config, std::string_view where);

  // Nothing when the config excludes the module from quantisation, or gives it another mode.
  std::optional<AffineFormat> format_of(std::string_view module) const;

 private:
  std::optional<AffineFormat> format_;
  std::map<std::string, std::optional<AffineFormat>, std::less<>> overrides_;
};

}  // namespace paceline
