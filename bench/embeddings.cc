// Measures embeddings of many short texts, all together. embeddings MODEL [--dummy] [--quantize=q8]
//                [--texts=512] [--tokens=20] [--rows=512] [--rounds=5] [--threads=N]
// MODEL is a directory or a GGUF file; with --dummy a directory's config.json is enough. Texts are
// random token ids, so no two begin alike.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "bench/options.h"
#include "paceline/llm.h"

namespace paceline {
namespace {

struct Options {
  LoadOptions load = {.max_model_len = 512};
  int64_t texts = 512;
  int64_t tokens = 20;
  int64_t rounds = 5;
};

Options read_options(int argc, char** argv) {
  Options options;
  bench::BenchOptions("embeddings")
      .model(options.load)
      .count("texts", options.texts)
      .count("tokens", options.tokens)
      .count("rows", options.load.max_num_batched_tokens)
      .count("rounds", options.rounds)
      .read(argc, argv);
  return options;
}

std::vector<Prompt> random_texts(const Options& options, int64_t vocab_size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Prompt> texts;
  for (int64_t i = 0; i < options.texts; ++i) {
    std::vector<int32_t> ids;
    for (int64_t k = 0; k < options.tokens; ++k) {
      ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab_size)));
    }
    texts.emplace_back(std::move(ids));
  }
  return texts;
}

void run_benchmark(const Options& options) {
  LLM llm = LLM::load(options.load);
  std::vector<double> rates;
  for (int64_t round = 0; round <= options.rounds; ++round) {
    const auto texts =
        random_texts(options, llm.model_info().vocab_size, static_cast<uint64_t>(round));
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& result : llm.embed(texts)) {
      if (const auto* error = std::get_if<ErrorInfo>(&result)) {
        fmt::print(stderr, "embeddings: {}\n", error->message);
        std::exit(1);
      }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (round > 0) rates.push_back(static_cast<double>(options.texts) / took.count());
  }
  std::sort(rates.begin(), rates.end());
  const double median = rates[rates.size() / 2];
  fmt::print(
      "{} texts of {} tokens: {:.1f} a second ({:.1f} to {:.1f}), {:.0f} tokens a second; {} "
      "threads, {}\n",
      options.texts, options.tokens, median, rates.front(), rates.back(),
      median * static_cast<double>(options.tokens), llm.device_info().num_threads,
      llm.device_info().instruction_set);
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::run_benchmark(paceline::read_options(argc, argv));
  return 0;
}
