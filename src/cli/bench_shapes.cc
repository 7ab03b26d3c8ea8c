#include "cli/bench_shapes.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace paceline {
namespace {

struct Shape {
  std::string_view name;
  std::string_view config;
};

// The sizes are those of the published config.json files; small is ours, some 160 M weights.
constexpr Shape kShapes[] = {
    {"small", R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 1024,
      "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
      "tie_word_embeddings": true, "torch_dtype": "bfloat16"})"},
    {"llama-3.2-1b", R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048,
      "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                       "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
      "tie_word_embeddings": true, "torch_dtype": "bfloat16"})"},
    {"qwen3-0.6b", R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024,
      "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
      "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu",
      "tie_word_embeddings": true, "torch_dtype": "bfloat16"})"},
    {"gemma-3-1b", R"({"model_type": "gemma3_text", "vocab_size": 262144, "hidden_size": 1152,
      "intermediate_size": 6912, "num_hidden_layers": 26, "num_attention_heads": 4,
      "num_key_value_heads": 1, "head_dim": 256, "max_position_embeddings": 32768,
      "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
      "query_pre_attn_scalar": 256, "sliding_window": 512, "sliding_window_pattern": 6,
      "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true,
      "torch_dtype": "bfloat16"})"},
};

}  // namespace

ShapeDirectory::ShapeDirectory(std::string_view shape) {
  const Shape* found = nullptr;
  for (const Shape& candidate : kShapes) {
    if (candidate.name == shape) found = &candidate;
  }
  PL_CHECK(found != nullptr, "a shape that --shape offers has no config");
  std::string pattern = (std::filesystem::temp_directory_path() / "paceline-shape-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {}", pattern, std::strerror(errno)));
  }
  path_ = pattern;
  std::ofstream file(path_ / "config.json");
  file << found->config;
  if (!file.flush()) {
    throw Error(ErrorCode::exhausted, fmt::format("{}: can't be written", pattern));
  }
}

ShapeDirectory::~ShapeDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace paceline
