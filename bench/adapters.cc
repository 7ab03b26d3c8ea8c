// Measures decode steps of many sequences with LoRA adapters on all linear modules, and without, in
// turn. adapters MODEL [--dummy] [--quantize=q8] [--sequences=16] [--adapters=8] [--rank=8]
//                [--steps=24] [--rounds=5] [--threads=N]
// MODEL is a directory; with --dummy its config.json is enough.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/options.h"
#include "engine/channel.h"
#include "engine/engine.h"
#include "load/loaded_model.h"
#include "models/decoder.h"
#include "models/pack_adapter.h"
#include "runner/loaded_adapter.h"
#include "tests/models/random_adapter.h"

namespace paceline {
namespace {

struct Options {
  LoadOptions load = {.max_model_len = 512, .enable_lora = true, .max_loras = 256};
  int64_t sequences = 16;
  int64_t adapters = 8;
  int64_t rank = 8;
  int64_t steps = 24;
  int64_t rounds = 5;
};

Options read_options(int argc, char** argv) {
  Options options;
  bench::BenchOptions("adapters")
      .model(options.load)
      .count("sequences", options.sequences)
      .count("adapters", options.adapters)
      .count("rank", options.rank)
      .count("steps", options.steps)
      .count("rounds", options.rounds)
      .read(argc, argv);
  return options;
}

using Adapters = std::vector<std::shared_ptr<const LoadedAdapter>>;

Adapters make_adapters(const Options& options, LoadedModel& model) {
  Adapters adapters;
  for (int64_t i = 0; i < options.adapters; ++i) {
    Memory memory;
    const testing::RandomAdapter kind = {.seed = static_cast<uint64_t>(i + 1),
                                         .min_rank = options.rank,
                                         .max_rank = options.rank,
                                         .size = 0.01f,
                                         .b_size = 0.01f};
    const DecoderConfig& config = model.decoder->config();
    auto one = std::make_shared<LoadedAdapter>();
    const Adapter adapter = testing::random_adapter(config, kind, memory);
    one->digest = adapter.digest();
    one->weights = pack_adapter(adapter, config, *model.backend);
    adapters.push_back(std::move(one));
  }
  return adapters;
}

// Seconds of a decode step. Without adapters when there are none.
double step_seconds(const Options& options, Engine& engine, const Adapters& adapters) {
  const auto channel = std::make_shared<Channel>();
  for (int64_t i = 0; i < options.sequences; ++i) {
    GenerateRequest request{.prompt = {static_cast<TokenId>(100 + i), 7, 9},
                            .max_tokens = options.steps + 4};
    request.sampling.temperature = 0;
    if (!adapters.empty()) request.adapter = adapters[static_cast<size_t>(i) % adapters.size()];
    engine.submit(std::move(request), channel);
  }
  for (int i = 0; i < 3; ++i) engine.step();  // the prompts, and warm caches
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < options.steps; ++i) engine.step();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  while (engine.step()) {
  }
  return took.count() / static_cast<double>(options.steps);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run_benchmark(const Options& options) {
  const auto model = load_model(options.load);
  const Adapters adapters = make_adapters(options, *model);
  const double bytes = static_cast<double>(adapters.front()->weights.size_bytes());
  std::vector<double> plain, adapted, shares;
  for (int64_t round = 0; round < options.rounds; ++round) {
    plain.push_back(step_seconds(options, *model->engine, {}));
    adapted.push_back(step_seconds(options, *model->engine, adapters));
    shares.push_back(plain.back() / adapted.back());
  }
  fmt::print(
      "{} sequences, {} adapters of rank {} ({:.1f} MB packed each): {:.2f} ms a step, "
      "{:.2f} without, {:.0f} % of its speed ({} threads)\n",
      options.sequences, options.adapters, options.rank, bytes / 1e6, 1e3 * median(adapted),
      1e3 * median(plain), 100 * median(shares), model->threads->num_threads());
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::run_benchmark(paceline::read_options(argc, argv));
  return 0;
}
