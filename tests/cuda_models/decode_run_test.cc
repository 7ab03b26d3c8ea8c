// Engines on the emulated GPU, with runs of the decode loop and without: the same tokens and
// log-probabilities, whatever comes, ends and is cancelled while a run goes on.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/channel.h"
#include "engine/step_engine.h"
#include "layers/kv_storage.h"
#include "models/pack_adapter.h"
#include "runner/loaded_adapter.h"
#include "runner/model_runner.h"
#include "tests/models/random_adapter.h"
#include "tests/models/test_model.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::string ending;
  bool operator==(const Answer&) const = default;
};
using Answers = std::map<std::pair<RequestId, int32_t>, Answer>;

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
TokenText letter(TokenId id) {
  return {.bytes = kLetters.substr(static_cast<size_t>(id) % kLetters.size(), 1)};
}

struct Types {
  DType weights = DType::f32;
  DType kv = DType::f32;
};

class GpuEngine {
 public:
  GpuEngine(const std::string& name, Types types, int64_t num_blocks, int64_t max_run_steps,
            bool has_adapters = false)
      : model_(find_golden(name).directory, {.backend = BackendKind::cuda,
                                             .num_threads = 2,
                                             .weight_dtype = types.weights,
                                             .kv_dtype = types.kv}) {
    std::vector<CacheGroup> groups;
    for (const LayerGroup& group : cache_groups(model_.config())) {
      groups.push_back({.window = group.window,
                        .num_blocks = group.is_recurrent ? kNumStates : num_blocks,
                        .is_recurrent = group.is_recurrent,
                        .holds_open_rows = group.holds_open_rows});
    }
    std::vector<int64_t> group_blocks;
    for (const CacheGroup& group : groups) group_blocks.push_back(group.num_blocks);
    cache_ = std::make_unique<StateCache>(kBlockSize, groups);
    runner_ = std::make_unique<ModelRunner>(
        model_.decoder(), model_.backend(),
        KvStorage(model_.decoder().kv_layers(group_blocks), kBlockSize, types.kv,
                  model_.backend().memory()),
        RunnerLimits{.max_rows = 64,
                     .max_logits_rows = 3,
                     .adapters = has_adapters ? AdapterUse::any : AdapterUse::none});
    engine_ = std::make_unique<StepEngine>(*runner_, memory_, *cache_,
                                           EngineLimits{.max_model_len = kMaxLength,
                                                        .max_batched_tokens = 24,
                                                        .max_num_seqs = 5,
                                                        .max_adapters = has_adapters ? 2 : 0,
                                                        .max_run_steps = max_run_steps},
                                           letter);
    if (!has_adapters) return;
    add_adapter({.seed = 1});
    add_adapter({.seed = 2, .dtype = DType::f32, .max_rank = 40});
    add_adapter({.seed = 3, .adapts = [](std::string_view module) {
                   return module.find("v_proj") != module.npos ||
                          module.find("down") != module.npos;
                 }});
  }

  // One of three, or none.
  std::shared_ptr<const LoadedAdapter> adapter(size_t index) const {
    return adapters_.empty() ? nullptr : adapters_[index];
  }

  bool has_loop() const { return runner_->decode_loop() != nullptr; }
  // Of some sequences, which are stepped plainly.
  bool stretches_ropes() const { return runner_->stretched_length(kMaxLength) > 0; }
  StepEngine& engine() { return *engine_; }
  RequestId submit(GenerateRequest request) {
    return engine_->submit(std::move(request), channel_).value();
  }
  bool step() {
    const bool more = engine_->step();
    engine_->check_integrity();
    channel_->poll(events_);
    for (const TokenEvent& event : events_) {
      Answer& answer = answers_[{event.request, event.choice}];
      if (event.token) {
        answer.tokens.push_back(event.token->id);
        answer.logprobs.push_back(event.token->logprob);
      }
      for (const TokenLogprob& other : event.top_logprobs) {
        answer.logprobs.push_back(other.logprob);
        answer.tokens.push_back(other.id);
      }
      if (!event.ending) continue;
      answer.ending = std::to_string(static_cast<int>(event.ending->finish.reason)) + " " +
                      event.ending->error.value_or(ErrorInfo{}).message;
    }
    return more;
  }
  const Answers& answers() const { return answers_; }
  bool all_is_free() const {
    bool free = true;
    for (int g = 0; g < cache_->num_groups(); ++g) {
      free &= cache_->pool(g).num_free() == cache_->group(g).num_blocks;
    }
    return free;
  }

 private:
  static constexpr int64_t kBlockSize = 4, kMaxLength = 128, kNumStates = 7;

  void add_adapter(const RandomAdapter& kind) {
    auto adapter = std::make_shared<LoadedAdapter>();
    adapter->digest.low = kind.seed;
    adapter->weights = pack_adapter(random_adapter(model_.config(), kind, memory_), model_.config(),
                                    model_.backend());
    adapters_.push_back(std::move(adapter));
  }

  TestModel model_;
  Memory memory_;
  std::vector<std::shared_ptr<const LoadedAdapter>> adapters_;
  std::unique_ptr<StateCache> cache_;
  std::unique_ptr<ModelRunner> runner_;
  std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
  std::unique_ptr<StepEngine> engine_;
  std::vector<TokenEvent> events_;
  Answers answers_;
};

GenerateRequest greedy(int32_t length, int32_t first, int64_t max_tokens) {
  GenerateRequest request{.prompt = {}, .max_tokens = max_tokens};
  for (int32_t i = 0; i < length; ++i) request.prompt.push_back(3 + (first + 17 * i) % 250);
  request.sampling.temperature = 0;
  request.want_logprobs = true;
  return request;
}

// Sequences that end at different steps, by stop strings, tokens and lengths, with choices; more
// than run at once, so that places are refilled; one that comes and one that goes meanwhile.
void ask(GpuEngine& gpu, RequestId& cancelled) {
  gpu.submit(greedy(9, 1, 30));
  cancelled = gpu.submit(greedy(5, 40, 60));
  GenerateRequest stopped = greedy(14, 90, 40);
  stopped.stop_strings = {"e", "jk"};
  gpu.submit(stopped);
  GenerateRequest choices = greedy(7, 5, 9);
  choices.n = 2;
  choices.want_logprobs = false;
  gpu.submit(choices);
  GenerateRequest ends = greedy(21, 77, 33);
  for (TokenId id = 0; id < 250; id += 11) ends.stop_token_ids.push_back(id);
  ends.min_tokens = 10;
  ends.adapter = gpu.adapter(0);
  gpu.submit(ends);
  GenerateRequest sampled = greedy(4, 8, 6);
  sampled.sampling = {{.seed = 3}};
  sampled.adapter = gpu.adapter(1);
  gpu.submit(sampled);
  GenerateRequest penalised = greedy(12, 31, 25);
  penalised.sampling = {{.temperature = 0.9f,
                         .top_p = 0.95f,
                         .repetition_penalty = 1.2f,
                         .frequency_penalty = 0.3f,
                         .num_top_logprobs = 3,
                         .seed = 5}};
  penalised.sampling.logit_bias = {{7, -2.0f}, {90, 1.0f}};
  penalised.adapter = gpu.adapter(2);
  gpu.submit(penalised);
  for (int i = 0; i < 24; ++i) gpu.step();
  gpu.submit(greedy(9, 1, 22));  // its prefix is in the cache
  for (int i = 0; i < 5; ++i) gpu.step();
  gpu.engine().cancel(cancelled);
  while (gpu.step()) {
  }
}

void expect_same_as_plain(const std::string& name, Types types, int64_t num_blocks,
                          bool has_adapters = false) {
  GpuEngine plain(name, types, num_blocks, 1, has_adapters);
  GpuEngine with_runs(name, types, num_blocks, 16, has_adapters);
  RequestId cancelled = 0;
  ask(plain, cancelled);
  ask(with_runs, cancelled);
  EXPECT_EQ(plain.engine().counters().run_steps, 0);
  if (!with_runs.stretches_ropes()) {
    EXPECT_GT(with_runs.engine().counters().run_steps, 15);
  }
  EXPECT_EQ(with_runs.answers().size(), plain.answers().size());
  for (const auto& [id, answer] : with_runs.answers()) {
    SCOPED_TRACE(id.first);
    if (id.first == cancelled) continue;
    const Answer& expected = plain.answers().at(id);
    EXPECT_EQ(answer.tokens, expected.tokens);
    EXPECT_EQ(answer.logprobs, expected.logprobs);
    EXPECT_EQ(answer.ending, expected.ending);
  }
  EXPECT_TRUE(with_runs.all_is_free());
}

bool can_loop(const std::string& name) { return GpuEngine(name, {}, 16, 2).has_loop(); }

class CudaDecodeRun : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaDecodeRun, GivesThePlainStepsBits) {
  if (!can_loop(GetParam())) GTEST_SKIP() << "its steps need the CPU";
  expect_same_as_plain(GetParam(), {}, 200);
}

std::vector<std::string> families_to_run() {
  if (is_full_scale()) return golden_names();
  return {"llama_scaled_tied"};
}

INSTANTIATE_TEST_SUITE_P(all, CudaDecodeRun, ::testing::ValuesIn(families_to_run()),
                         [](const auto& golden) { return golden.param; });

// Delta nets, and short convolutions with a mixture.
std::vector<std::string> looping_hybrids() {
  if (is_full_scale()) return simple_hybrid_names();
  return {"qwen3_5_tied_pattern", "lfm2_moe_tied"};
}

class CudaHybridDecodeRun : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaHybridDecodeRun, GivesThePlainStepsBits) {
  ASSERT_TRUE(can_loop(GetParam()));
  expect_same_as_plain(GetParam(), {}, 200);
}

INSTANTIATE_TEST_SUITE_P(all, CudaHybridDecodeRun, ::testing::ValuesIn(looping_hybrids()),
                         [](const auto& golden) { return golden.param; });

TEST(CudaDecodeRuns, GiveThePlainStepsBitsInBfloat16AndWithFewBlocks) {
  expect_same_as_plain("qwen3_tied", {DType::bf16, DType::i8}, 200);
  if (is_full_scale()) expect_same_as_plain("gemma2_even", {}, 26);
}

TEST(CudaDecodeRuns, GiveThePlainStepsBitsOfMixtures) {
  expect_same_as_plain("qwen2_moe_tied_stacked", {DType::bf16, DType::i8}, 200);
}

TEST(CudaDecodeRuns, GiveThePlainStepsBitsWithAdapters) {
  expect_same_as_plain("llama_scaled_tied", {DType::bf16, DType::bf16}, 200, true);
  if (!is_full_scale()) return;
  for (const std::string& name : dense_golden_names()) {
    if (can_loop(name)) expect_same_as_plain(name, {}, 60, true);
  }
}

TEST(CudaDecodeRuns, AreForModelsWhoseStepsNeedNoCpu) {
  EXPECT_TRUE(can_loop("gemma3_model_prefix"));
  EXPECT_TRUE(can_loop("mixtral_plain"));
  EXPECT_FALSE(can_loop("ministral3_growth"));
}

}  // namespace
}  // namespace paceline::testing
