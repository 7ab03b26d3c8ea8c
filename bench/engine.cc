// Measures the cost of a step beside the forward: the policy, and the whole step on a runner that
// computes nothing, with every sequence decoding. The same with drafts, from a drafter that
// proposes constants.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/channel.h"
#include "engine/speculation.h"
#include "engine/step_engine.h"
#include "runner/runner.h"
#include "sched/plan_step.h"
#include "state/state_cache.h"

namespace paceline {
namespace {

constexpr int64_t kVocabSize = 32;
constexpr int64_t kBlockSize = 16;

// Returns the same row of logits for all sequences.
class IdleRunner : public Runner {
 public:
  int64_t vocab_size() const override { return kVocabSize; }
  int64_t max_logits_rows() const override { return 256; }
  void run(const Batch& batch, AdapterTable /*adapters*/) override {
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

// The IdleRunner's greedy draws are 0.
class ConstantDrafter : public Drafter {
 public:
  explicit ConstantDrafter(TokenId token) : token_(token) {}

  std::string_view name() const override { return "constant"; }
  std::unique_ptr<DraftState> begin(std::span<const int32_t>, std::span<const int32_t>) override {
    return std::make_unique<DraftState>();
  }
  int64_t prospects(DraftState&, std::span<const int32_t>, int64_t most) override { return most; }
  void propose(std::span<const DraftRequest> requests) override {
    for (const DraftRequest& request : requests)
      request.draft->tokens.assign(static_cast<size_t>(request.most), token_);
  }

 private:
  TokenId token_;
};

// Sequences that decode, and what the engine does with their drafts beside plan, forward and draws.
class DraftingSequences {
 public:
  DraftingSequences(int64_t count, const SpeculationLimits& limits)
      : cache_(kBlockSize, std::vector<CacheGroup>{{.num_blocks = 1}}),
        speculation_(limits, &drafter_, kVocabSize) {
    for (int64_t i = 0; i < count; ++i) {
      GenerateRequest request{.prompt = {1, 2}, .max_tokens = 1 << 20};
      auto shared = std::make_shared<RequestState>(i, 0, std::move(request), nullptr);
      auto& one = running_.emplace_back(std::make_unique<Sequence>(std::move(shared), 0, cache_));
      one->tokens.push_back(0);
      one->num_computed = 2;
      one->stats.output_tokens = 1;
    }
  }

  // Returns how many tokens were drafted.
  int64_t step() {
    speculation_.wish(running_);
    plan_.slices.clear();
    for (size_t i = 0; i < running_.size(); ++i) {
      plan_.slices.push_back({.sequence = static_cast<int32_t>(i),
                              .first = 2,
                              .count = 1 + running_[i]->num_wished,
                              .num_drafted = running_[i]->num_wished});
    }
    speculation_.propose(running_, plan_, failure_);
    int64_t num_drafted = 0;
    for (const PlannedSlice& slice : plan_.slices) {
      if (slice.num_drafted == 0) continue;
      Sequence& sequence = *running_[static_cast<size_t>(slice.sequence)];
      sequence.num_accepted = slice.num_drafted;
      speculation_.settle(sequence, slice.num_drafted);
      num_drafted += slice.num_drafted;
    }
    const int64_t count = std::ssize(running_);
    record_.num_rows = count + num_drafted;
    record_.drafts = {{.id = 0, .drafted = num_drafted, .accepted = num_drafted}};
    const double seconds = 1e-2 + 1e-5 * static_cast<double>(record_.num_rows);
    speculation_.record_step(record_, count, seconds);
    return num_drafted;
  }

 private:
  StateCache cache_;
  ConstantDrafter drafter_{0};
  Speculation speculation_;
  std::vector<std::unique_ptr<Sequence>> running_;
  StepPlan plan_;
  StepRecord record_;
  std::string failure_;
};

// Drafts of four tokens, or of up to eight that adapt.
void draft_beside_forward(benchmark::State& state) {
  const int64_t count = state.range(0);
  const bool adapts = state.range(1) != 0;
  DraftingSequences sequences(count, {.num_tokens = adapts ? 8 : 4, .adapts = adapts});
  for (int i = 0; i < 200; ++i) sequences.step();
  int64_t num_drafted = 0;
  for (auto _ : state) num_drafted += sequences.step();
  const auto steps = static_cast<double>(state.iterations() * count);
  state.counters["drafted"] = static_cast<double>(num_drafted) / steps;
  state.counters["s_per_sequence"] =
      benchmark::Counter(steps, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(draft_beside_forward)
    ->ArgsProduct({{1, 32, 256}, {0, 1}})
    ->ArgNames({"sequences", "adapts"})
    ->Unit(benchmark::kMicrosecond);

void step_with(benchmark::State& state, const SpeculationLimits& limits, Drafter* drafter) {
  const int64_t count = state.range(0);
  Memory memory;
  ThreadPool threads(1);
  IdleRunner runner;
  constexpr int64_t kContext = 1 << 16;
  const std::vector<CacheGroup> groups = {{.num_blocks = count * 4096}};
  StateCache cache(kBlockSize, groups);
  StepEngine engine(runner, memory, cache,
                    {.max_model_len = kContext,
                     .max_batched_tokens = 2048,
                     .max_num_seqs = 256,
                     .speculation = limits},
                    {}, drafter);
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

void whole_step(benchmark::State& state) { step_with(state, {}, nullptr); }
BENCHMARK(whole_step)->Arg(1)->Arg(32)->Arg(256)->Unit(benchmark::kMicrosecond)->Iterations(20000);

// Four drafted tokens for each sequence, all drawn or none.
void whole_step_with_drafts(benchmark::State& state) {
  ConstantDrafter drafter(state.range(1) != 0 ? 0 : 1);
  step_with(state, {.num_tokens = 4, .adapts = false}, &drafter);
}
BENCHMARK(whole_step_with_drafts)
    ->ArgsProduct({{1, 32, 256}, {0, 1}})
    ->ArgNames({"sequences", "accepted"})
    ->Unit(benchmark::kMicrosecond)
    ->Iterations(5000);

}  // namespace
}  // namespace paceline
