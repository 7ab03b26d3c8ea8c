// Sizes of the models whose operations are measured (their config.json).
#pragma once

#include <cstdint>
#include <string_view>

namespace paceline {

struct ModelShape {
  std::string_view name;
  int64_t hidden = 0;
  int64_t mlp = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab = 0;
};

inline constexpr ModelShape kMeasuredShapes[] = {
    {"llama-3.2-1b", 2048, 8192, 32, 8, 64, 128256},
    {"qwen3-0.6b", 1024, 3072, 16, 8, 128, 151936},
    {"gemma-3-1b", 1152, 6912, 4, 1, 256, 262144},
};
inline constexpr ModelShape kLlama8B = {"llama-3.1-8b", 4096, 14336, 32, 8, 128, 128256};
inline constexpr ModelShape kSmallShape = {"small", 64, 96, 4, 2, 32, 100};

}  // namespace paceline
