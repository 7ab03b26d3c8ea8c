// GenerationConfig holds the stops and sampling defaults of a model's own files.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace paceline {

struct GenerationConfig {
  std::vector<int32_t> eos_tokens;  // load_model adds the tokenizer's
  std::optional<int32_t> bos_token;
  std::optional<int64_t> max_new_tokens;
  std::optional<float> temperature;  // 0 when do_sample is false and nothing else is said
  std::optional<float> top_p;
  std::optional<int32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
};

}  // namespace paceline
