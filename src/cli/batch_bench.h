// Measures a model's batches: rates by batch size, cached prefixes, gaps beside a prefill, memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "load/loaded_model.h"

namespace paceline {

// Sequences that begin together, each with a prompt of its own.
struct BatchRate {
  int64_t num_sequences = 0;
  double decode_tokens_per_s = 0;  // of all of them, once every prompt is computed
  double total_tokens_per_s = 0;   // prompts and outputs, from the first step to the last
};

struct ClassifyRate {
  int64_t num_prompts = 0;  // in a call
  double prompts_per_s = 0;
};

// What a long prompt does to a stream that runs beside it.
struct PrefillBeside {
  int64_t prompt_tokens = 0;
  double unloaded_step_s = 0;  // median, before the prompt came
  double longest_gap_s = 0;    // between two tokens, while it was computed
  double alone_s = 0;          // the same prompt with nothing beside it
  double beside_s = 0;         // and with the stream beside it
};

struct BatchBench {
  std::vector<BatchRate> generate;
  std::vector<ClassifyRate> classify;
  int64_t first_token_prompt = 0;  // tokens
  double first_token_cold_s = 0;
  double first_token_warm_s = 0;        // the same prompt but for its end, found in the cache
  std::optional<PrefillBeside> beside;  // nothing when the context is too short
  size_t bytes_per_waiting = 0;         // of a request with a prompt of 128 tokens
  size_t bytes_per_running = 0;         // beside its keys and values
  size_t kv_bytes_per_token = 0;
};

struct BatchBenchSizes {
  int64_t prompt_tokens = 128;
  int64_t output_tokens = 64;
  int64_t repetitions = 3;  // at most
};

// Told what is measured next.
using BatchBenchNotice = std::function<void(const std::string& what)>;

// Medians over the repetitions, fewer where one takes long. The model's engine belongs to no
// thread.
BatchBench measure_batches(LoadedModel& model, const BatchBenchSizes& sizes,
                           const BatchBenchNotice& notice);

// For people, and as the members of a JSON object.
std::string batch_table(const BatchBench& bench);
class JsonWriter;
void write_batch_members(const BatchBench& bench, JsonWriter& writer);

}  // namespace paceline
