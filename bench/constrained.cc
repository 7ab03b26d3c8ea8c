// Measures streams under a JSON Schema beside free ones, as ratios of tokens per second in
// alternating runs. constrained MODEL [--dummy] [--quantize=q8] [--tokens=N] [--sequences=1,16]
//             [--rounds=N]
// MODEL is a directory with a tokenizer; with --dummy its config.json is enough for the weights.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bench/options.h"
#include "paceline/llm.h"

namespace paceline {
namespace {

// Long enough for any number of tokens; parts of it are forced, others have wide and narrow masks.
constexpr std::string_view kSchema = R"({"type": "array", "minItems": 1000, "items": {
  "type": "object", "required": ["name", "tags", "n"], "additionalProperties": false, "properties": {
    "name": {"type": "string", "minLength": 30, "maxLength": 400},
    "tags": {"type": "array", "minItems": 5, "items": {"type": "string", "pattern": "^[a-z]{3,12}$"}},
    "n": {"type": "number"}}}})";

struct Options {
  LoadOptions load = {.max_model_len = 1000, .prefix_caching = false};
  int64_t tokens = 48;
  int64_t rounds = 5;
  std::vector<int64_t> sequences = {1, 16};
};

Options read_options(int argc, char** argv) {
  Options options;
  bench::BenchOptions("constrained")
      .model(options.load)
      .count("tokens", options.tokens)
      .count("rounds", options.rounds)
      .counts("sequences", options.sequences)
      .read(argc, argv);
  return options;
}

double tokens_per_second(LLM& llm, const Options& options, int64_t num_sequences, int64_t round,
                         bool is_constrained) {
  std::vector<LLM::Request> requests;
  for (int64_t i = 0; i < num_sequences; ++i) {
    GenerateOptions of_request{.max_tokens = options.tokens, .temperature = 0.8f};
    of_request.seed = static_cast<uint64_t>(i + 100 * round);
    of_request.ignore_eos = true;
    if (is_constrained) {
      of_request.constraint = {.kind = ConstraintSpec::Kind::json_schema,
                               .text = std::string(kSchema)};
    }
    requests.push_back({std::string("Write a list of things."), of_request});
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto results = llm.batch_generate(requests);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  int64_t num_tokens = 0;
  for (const auto& result : results) {
    if (const auto* error = std::get_if<ErrorInfo>(&result))
      bench::explain("constrained", error->message);
    num_tokens += std::get<Completion>(result).usage.completion_tokens;
  }
  return static_cast<double>(num_tokens) / time.count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(LLM& llm, const Options& options, int64_t num_sequences) {
  tokens_per_second(llm, options, num_sequences, 0, true);  // compiles the schema
  std::vector<double> free, constrained, ratios;
  for (int64_t round = 0; round < options.rounds; ++round) {
    free.push_back(tokens_per_second(llm, options, num_sequences, round, false));
    constrained.push_back(tokens_per_second(llm, options, num_sequences, round, true));
    ratios.push_back(constrained.back() / free.back());
  }
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  fmt::print(
      "{:3} sequences: free {:8.1f} tok/s, constrained {:8.1f}, ratio {:.3f} ({:.3f} to {:.3f})\n",
      num_sequences, median(free), median(constrained), median(ratios), *least, *most);
  std::fflush(stdout);
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  try {
    const paceline::Options options = paceline::read_options(argc, argv);
    paceline::LLM llm = paceline::LLM::load(options.load);
    for (const int64_t count : options.sequences) paceline::measure(llm, options, count);
  } catch (const paceline::Error& error) {
    paceline::bench::explain("constrained", error.what());
  }
}
