// Measures the cost of a step beside the forward: the policy, and the whole step on a runner that
// computes nothing, with every sequence decoding.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/channel.h"
#include "engine/engine.h"
#include "kv/kv_cache.h"
#include "runner/runner.h"
#include "sched/plan_step.h"

namespace paceline {
namespace {

constexpr int64_t kVocabSize = 32;
constexpr int64_t kBlockSize = 16;

// Returns the same row of logits for all sequences.
class IdleRunner : public Runner {
 public:
  int64_t vocab_size() const override { return kVocabSize; }
  int64_t max_logits_rows() const override { return 256; }
  void run(const Batch& batch) override {
    finite_.assign(static_cast<size_t>(batch.num_rows()), 1);
  }
  std::span<const uint8_t> finite_rows() const override { return finite_; }
  std::span<const float> logits(int64_t, int64_t count) override {
    rows_.resize(static_cast<size_t>(count * kVocabSize), 0.0f);
    return rows_;
  }
  float log_sum_exp(int64_t) override { return 0.0f; }
  std::span<const float> column_logits(int64_t first, int64_t count,
                                       std::span<const int32_t>) override {
    return logits(first, count);
  }

 private:
  std::vector<uint8_t> finite_;
  std::vector<float> rows_;
};

void plan_decodes(benchmark::State& state) {
  const auto count = static_cast<size_t>(state.range(0));
  constexpr int64_t kLength = 500;
  std::vector<int32_t> references(count * 32 + 1000, 1);
  std::vector<int32_t> table(kLength / kBlockSize + 1, 3);
  std::vector<SchedBlocks> blocks(count);
  std::vector<SchedRunning> running(count);
  for (size_t i = 0; i < count; ++i) {
    blocks[i] = {.table = table, .length = kLength};
    running[i] = {.arrival_id = static_cast<int64_t>(i),
                  .num_tokens = kLength + 1,
                  .num_computed = kLength,
                  .num_output = 10,
                  .groups = std::span(blocks).subspan(i, 1)};
  }
  const SchedGroup group{.num_free = 1000, .reference_counts = references};
  const SchedView view{.groups = {&group, 1}, .running = running};
  PlanScratch scratch;
  StepPlan plan;
  for (auto _ : state) {
    plan_step(view, {}, scratch, plan);
    benchmark::DoNotOptimize(plan.slices.data());
  }
}
BENCHMARK(plan_decodes)->Arg(1)->Arg(32)->Arg(256)->Unit(benchmark::kMicrosecond);

void whole_step(benchmark::State& state) {
  const int64_t count = state.range(0);
  Memory memory;
  ThreadPool threads(1);
  IdleRunner runner;
  constexpr int64_t kContext = 1 << 16;
  const std::vector<CacheGroup> groups = {{.num_blocks = count * 4096}};
  KvCache cache(kBlockSize, groups);
  Engine engine(runner, memory, cache,
                {.max_model_len = kContext, .max_batched_tokens = 512, .max_num_seqs = 256}, {});
  const auto channel = std::make_shared<Channel>();
  for (int64_t i = 0; i < count; ++i) {
    GenerateRequest request{.prompt = {1, static_cast<TokenId>(i % kVocabSize)},
                            .max_tokens = kContext - 100};
    request.sampling.temperature = 0;
    engine.submit(std::move(request), channel);
  }
  std::vector<TokenEvent> events;
  for (int i = 0; i < 100; ++i) engine.step();
  for (auto _ : state) {
    engine.step();
    channel->poll(events);
  }
  state.counters["running"] = static_cast<double>(engine.num_running());
}
BENCHMARK(whole_step)->Arg(1)->Arg(32)->Arg(256)->Unit(benchmark::kMicrosecond)->Iterations(20000);

}  // namespace
}  // namespace paceline
