// Measures the sampler on one row of 128,256 logits (Llama 3's vocabulary), on one thread.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "sampling/sampler.h"
#include "tensor/memory.h"

namespace paceline {
namespace {

constexpr int64_t kVocabSize = 128256;
constexpr int kNumRows = 16;

struct Fixture {
  // Normal logits; `spread` is their standard deviation.
  explicit Fixture(float spread) : rows(kNumRows, std::vector<float>(kVocabSize)) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal(0.0f, spread);
    for (auto& row : rows)
      for (float& logit : row) logit = normal(random);
    for (int i = 0; i < 1000; ++i)
      history.add_output(static_cast<int32_t>(random() % static_cast<uint64_t>(kVocabSize)));
  }

  void run(benchmark::State& state, const SamplingOptions& options, bool want_logprobs) {
    size_t position = 0;
    for (auto _ : state) {
      auto& row = rows[position % kNumRows];
      benchmark::DoNotOptimize(sampler.draw(want_logprobs ? with_sum(row) : LogitsRow{row}, options,
                                            history, static_cast<int64_t>(position)));
      ++position;
    }
  }

  LogitsRow with_sum(std::vector<float>& row) {
    float sum = 0.0f;
    backend->log_sum_exp(Tensor(row.data(), DType::f32, {1, kVocabSize}), std::span(&sum, 1));
    return {.logits = row, .log_sum_exp = sum};
  }

  ThreadPool threads{1};
  Memory memory;
  std::unique_ptr<Backend> backend = make_cpu_backend(choose_isa(), threads, memory);
  Sampler sampler{memory, kVocabSize};
  std::vector<std::vector<float>> rows;
  TokenHistory history;
};

SamplingOptions full_chain() {
  SamplingOptions options;
  options.temperature = 0.8f;
  options.min_p = 0.02f;
  options.top_k = 50;
  options.top_p = 0.9f;
  options.repetition_penalty = 1.1f;
  options.frequency_penalty = 0.2f;
  options.presence_penalty = 0.1f;
  for (int32_t id = 0; id < 100; ++id) options.logit_bias.emplace_back(id * 7, 1.0f);
  options.num_top_logprobs = 5;
  return options;
}

void sample_full_chain(benchmark::State& state) { Fixture(3.0f).run(state, full_chain(), true); }
BENCHMARK(sample_full_chain)->Unit(benchmark::kMicrosecond);

void sample_full_chain_mlx(benchmark::State& state) {
  SamplingOptions options = full_chain();
  options.order = SamplerOrder::mlx;
  Fixture(3.0f).run(state, options, true);
}
BENCHMARK(sample_full_chain_mlx)->Unit(benchmark::kMicrosecond);

void sample_greedy(benchmark::State& state) {
  Fixture(3.0f).run(state, {{.temperature = 0.0f}}, false);
}
BENCHMARK(sample_greedy)->Unit(benchmark::kMicrosecond);

void sample_temperature_only(benchmark::State& state) {
  Fixture(3.0f).run(state, {{.temperature = 0.8f}}, false);
}
BENCHMARK(sample_temperature_only)->Unit(benchmark::kMicrosecond);

void sample_top_p_peaked(benchmark::State& state) {
  Fixture(3.0f).run(state, {{.top_p = 0.9f}}, false);
}
BENCHMARK(sample_top_p_peaked)->Unit(benchmark::kMicrosecond);

void sample_top_p_flat(benchmark::State& state) {
  Fixture(0.1f).run(state, {{.top_p = 0.9f}}, false);
}
BENCHMARK(sample_top_p_flat)->Unit(benchmark::kMicrosecond);

void sample_top_k_10000(benchmark::State& state) {
  Fixture(1.0f).run(state, {{.top_k = 10000}}, false);
}
BENCHMARK(sample_top_k_10000)->Unit(benchmark::kMicrosecond);

void sample_top_n_sigma(benchmark::State& state) {
  Fixture(3.0f).run(state, {{.temperature = 0.8f, .top_n_sigma = 2.0f}}, false);
}
BENCHMARK(sample_top_n_sigma)->Unit(benchmark::kMicrosecond);

void sample_typical_p(benchmark::State& state) {
  Fixture(3.0f).run(state, {{.temperature = 0.8f, .min_p = 0.001f, .typical_p = 0.9f}}, false);
}
BENCHMARK(sample_typical_p)->Unit(benchmark::kMicrosecond);

void score_top_5(benchmark::State& state) {
  Fixture fixture(3.0f);
  size_t position = 0;
  for (auto _ : state) {
    auto& row = fixture.rows[position % kNumRows];
    benchmark::DoNotOptimize(
        fixture.sampler.score(fixture.with_sum(row), static_cast<int32_t>(position % 1000), 5));
    ++position;
  }
}
BENCHMARK(score_top_5)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace paceline
