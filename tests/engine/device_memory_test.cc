// An engine accesses the memory of its backend only through the backend's operations.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"
#include "engine/channel.h"
#include "engine/step_engine.h"
#include "kernels/cuda/make_cuda_backend.h"
#include "layers/load_context.h"
#include "layers/scratch.h"
#include "models/decoder.h"
#include "models/family.h"
#include "models/pack_adapter.h"
#include "runner/loaded_adapter.h"
#include "runner/model_runner.h"
#include "state/state_cache.h"
#include "tests/engine/guarded_backend.h"
#include "tests/kernels/op_inputs.h"
#include "tests/models/random_adapter.h"
#include "tests/test_scale.h"
#include "weights/checkpoint.h"
#include "weights/weight_reader.h"

namespace paceline::testing {
namespace {

// All results of a request's choice, floats included.
struct Got {
  std::vector<TokenId> tokens;
  std::vector<float> numbers;
  int64_t cached_tokens = 0;
  bool failed = false;

  void add(const std::vector<TokenLogprob>& logprobs) {
    for (const TokenLogprob& one : logprobs) {
      numbers.push_back(static_cast<float>(one.id));
      numbers.push_back(one.logprob);
    }
  }
  void add(const TokenEvent& event) {
    if (event.token) {
      tokens.push_back(event.token->id);
      numbers.push_back(event.token->logprob);
    }
    add(event.top_logprobs);
    if (event.prompt) {
      for (const ScoredToken& token : event.prompt->scored) {
        numbers.push_back(token.logprob.value_or(1.0f));
        add(token.top_logprobs);
      }
      const auto& columns = event.prompt->column_logits;
      numbers.insert(numbers.end(), columns.begin(), columns.end());
      numbers.insert(numbers.end(), event.prompt->row.begin(), event.prompt->row.end());
      numbers.insert(numbers.end(), event.prompt->pooled.begin(), event.prompt->pooled.end());
    }
    if (!event.ending) return;
    cached_tokens = event.ending->stats.cached_tokens;
    failed = event.ending->error.has_value();
  }
  bool operator==(const Got&) const = default;
};
using Answers = std::map<std::pair<RequestId, int32_t>, Got>;

struct Types {
  DType weights = DType::f32;
  DType kv = DType::f32;
};

// A model of tests/goldens. That of gemma2_even has two cache groups: a window of 16, and none.
class TinyEngine {
 public:
  TinyEngine(Backend& backend, Types types, bool draws_rows = true,
             const std::string& model = "gemma2_even")
      : backend_(backend), channel_(std::make_shared<Channel>()) {
    const std::filesystem::path directory =
        std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/goldens/models" / model;
    const std::string where = (directory / "config.json").string();
    const Json json = parse_json(read_text_file(where, 1 << 20), where);
    const auto checkpoint = open_checkpoint(directory);
    WeightReader weights(*checkpoint);
    const LoadContext context{
        .weights = weights, .backend = backend, .weight_dtype = types.weights, .activations = {}};
    decoder_ = std::make_unique<Decoder>(context, read_decoder_config(json, weights, where));
    std::vector<CacheGroup> groups;
    for (const LayerGroup& group : cache_groups(decoder_->config())) {
      groups.push_back({.window = group.window, .num_blocks = kNumBlocks});
    }
    const std::vector<int64_t> num_blocks(groups.size(), kNumBlocks);
    cache_ = std::make_unique<StateCache>(kBlockSize, groups);
    runner_ = std::make_unique<ModelRunner>(
        *decoder_, backend,
        KvStorage(decoder_->kv_layers(num_blocks), kBlockSize, types.kv, backend.memory()),
        RunnerLimits{.max_rows = kMaxRows, .max_logits_rows = 4, .adapters = AdapterUse::any});
    runner_->set_pooled_head(dense_head(backend, decoder_->config().hidden_size));
    engine_ = std::make_unique<StepEngine>(*runner_, host_memory_, *cache_,
                                           EngineLimits{.max_model_len = 128,
                                                        .max_batched_tokens = kMaxRows,
                                                        .max_adapters = 2,
                                                        .draws_rows = draws_rows},
                                           nullptr);
  }

  static PooledHead dense_head(Backend& backend, int64_t hidden_size) {
    Memory memory;
    const OwnedTensor weight = random_tensor(memory, DType::f32, {5, hidden_size}, 1);
    const OwnedTensor bias = random_tensor(memory, DType::f32, {5}, 2);
    PooledHead head;
    head.add(backend, weight.view, &bias.view, PooledHead::Activation::tanh);
    return head;
  }

  std::shared_ptr<const LoadedAdapter> random_adapter_of(uint64_t seed) {
    const Adapter adapter =
        random_adapter(decoder_->config(), {.seed = seed, .dtype = DType::f32}, host_memory_);
    auto loaded = std::make_shared<LoadedAdapter>();
    loaded->name = std::to_string(seed);
    loaded->digest = adapter.digest();
    loaded->max_rank = 5;
    loaded->weights = pack_adapter(adapter, decoder_->config(), backend_);
    return loaded;
  }

  RequestId submit(GenerateRequest request) {
    return engine_->submit(std::move(request), channel_).value();
  }
  void run() {
    std::vector<TokenEvent> events;
    bool more = true;
    while (more) {
      more = engine_->step();
      engine_->check_integrity();
      channel_->poll(events);
      for (const TokenEvent& event : events) answers_[{event.request, event.choice}].add(event);
    }
  }
  const Answers& answers() const { return answers_; }

 private:
  static constexpr int64_t kNumBlocks = 128, kBlockSize = 4, kMaxRows = 16;

  Backend& backend_;
  Memory host_memory_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<StateCache> cache_;
  std::unique_ptr<ModelRunner> runner_;
  std::shared_ptr<Channel> channel_;
  std::unique_ptr<StepEngine> engine_;
  Answers answers_;
};

std::vector<TokenId> prompt_of(int32_t length, int32_t first) {
  std::vector<TokenId> prompt;
  for (int32_t i = 0; i < length; ++i) prompt.push_back(3 + (first + 17 * i) % 250);
  return prompt;
}

// Requests that read logits in every way, with chunked prompts beyond the window, forks that copy a
// block, and prefix hits.
Answers ask_everything(Backend& backend, Types types, bool draws_rows = true) {
  TinyEngine engine(backend, types, draws_rows);
  const auto ask = [&](int32_t length, auto&& change) {
    GenerateRequest request{.prompt = prompt_of(length, length), .max_tokens = 12};
    request.ignore_eos = true;
    change(request);
    engine.submit(std::move(request));
  };
  for (int round = 0; round < 2; ++round) {  // the second one hits the first one's prefixes
    ask(30, [](GenerateRequest& greedy) {
      greedy.sampling.temperature = 0;
      greedy.want_logprobs = true;
      greedy.sampling.num_top_logprobs = 3;
    });
    ask(21, [](GenerateRequest& sampled) {  // its last block is shared when the choices fork
      sampled.n = 3;
      sampled.sampling.top_p = 0.9f;
      sampled.sampling.repetition_penalty = 1.1f;
      sampled.want_logprobs = true;
    });
    ask(25, [](GenerateRequest& filtered) {
      filtered.sampling.typical_p = 0.9f;
      filtered.sampling.presence_penalty = 0.5f;
      filtered.sampling.logit_bias = {{17, 3.0f}, {40, -5.0f}};
      filtered.banned_sequences = {{9}, {17, 3}};
      filtered.min_tokens = 5;
      filtered.eos_tokens = {100, 101};
      filtered.ignore_eos = false;
      filtered.want_logprobs = true;
      filtered.sampling.logprob_token_ids = {1, 2, 250};
    });
    ask(40, [](GenerateRequest& scored) {
      scored.max_tokens = 0;
      scored.score_from = 0;
      scored.sampling.num_top_logprobs = 2;
    });
    for (const Pooling pooling : {Pooling::last, Pooling::mean}) {
      ask(33, [pooling](GenerateRequest& embedded) {
        embedded.max_tokens = 0;
        embedded.pooling = pooling;
      });
    }
    for (const int32_t length : {9, 10}) {
      ask(length, [](GenerateRequest& classified) {
        classified.max_tokens = 0;
        classified.columns = {7, 200, 7, 31};
      });
    }
    ask(11, [](GenerateRequest& row) {
      row.max_tokens = 1;
      row.want_row = true;
      row.columns = {5};
    });
    engine.run();
  }
  return engine.answers();
}

TEST(DeviceMemory, AnEngineReadsItThroughOperationsAlone) {
  for (const Types types : cases_to_run<Types>({{}, {DType::bf16, DType::i8}}, 0, 2, 2)) {
    ThreadPool threads(2);
    Memory memory;
    const auto plain = make_cpu_backend(choose_isa(), threads, memory);
    GuardedBackend guarded(threads);
    const Answers expected = ask_everything(*plain, types);
    const Answers answers = ask_everything(guarded, types);
    EXPECT_EQ(answers.size(), 2u * 11u);
    int64_t cached_tokens = 0;
    for (const auto& [id, got] : answers) {
      EXPECT_FALSE(got.failed);
      EXPECT_FALSE(got.numbers.empty());
      cached_tokens += got.cached_tokens;
    }
    EXPECT_EQ(answers, expected) << "other bits than without a guard";
    EXPECT_GT(guarded.num_copied_blocks(), 0);
    EXPECT_GT(cached_tokens, 0);
  }
}

// A mixture's experts with adapters' pairs: rows of two adapters and of none in each step.
Answers ask_adapters_of_experts(Backend& backend) {
  TinyEngine engine(backend, {}, true, "qwen3_moe_tied");
  const std::shared_ptr<const LoadedAdapter> adapters[] = {nullptr, engine.random_adapter_of(1),
                                                           engine.random_adapter_of(2)};
  for (int32_t i = 0; i < 6; ++i) {
    GenerateRequest request{.prompt = prompt_of(20 + i / 3, 1), .max_tokens = 8};
    request.ignore_eos = true;
    request.want_logprobs = true;
    request.sampling.temperature = 0;
    request.adapter = adapters[i % 3];
    engine.submit(std::move(request));
  }
  engine.run();
  return engine.answers();
}

TEST(DeviceMemory, AnEngineReadsTheRoutingOfAdaptedExpertsThroughOperationsAlone) {
  ThreadPool threads(2);
  Memory memory;
  const auto plain = make_cpu_backend(choose_isa(), threads, memory);
  GuardedBackend guarded(threads);
  const Answers answers = ask_adapters_of_experts(guarded);
  EXPECT_EQ(answers, ask_adapters_of_experts(*plain)) << "other bits than without a guard";
  std::set<std::vector<float>> different;
  for (const auto& [id, got] : answers) {
    EXPECT_FALSE(got.failed);
    different.insert(got.numbers);
  }
  EXPECT_EQ(different.size(), 6u);
}

// A GPU's answers: near those of the CPU, and the same bits in another order of its threads.
TEST(DeviceMemory, AnEngineOnAnEmulatedGpuReadsItThroughOperationsAlone) {
  if (runs_fewer_cases()) GTEST_SKIP() << "minutes";
  const auto ask_gpu = [](Types types, const cuda::EmulationOptions& options,
                          bool draws_rows = true) {
    ThreadPool threads(2);
    const auto device = cuda::make_emulated_device(options);
    return ask_everything(*cuda::make_cuda_backend(*device, threads), types, draws_rows);
  };
  for (const Types types : {Types{}, Types{DType::bf16, DType::i8}}) {
    ThreadPool threads(2);
    Memory memory;
    const Answers expected =
        ask_everything(*make_cpu_backend(choose_isa(), threads, memory), types);
    const Answers answers = ask_gpu(types, {.guards_memory = true});
    EXPECT_EQ(answers, ask_gpu(types, {.order = cuda::ThreadOrder::shuffled, .num_threads = 2}));
    EXPECT_EQ(answers, ask_gpu(types, {}, false)) << "the CPU draws otherwise";
    ASSERT_EQ(answers.size(), expected.size());
    for (const auto& [id, got] : answers) {
      const Got& near = expected.at(id);
      EXPECT_FALSE(got.failed);
      EXPECT_EQ(got.cached_tokens, near.cached_tokens);
      if (types.weights != DType::f32) continue;
      EXPECT_EQ(got.tokens, near.tokens);
      ASSERT_EQ(got.numbers.size(), near.numbers.size());
      for (size_t i = 0; i < got.numbers.size(); ++i) {
        EXPECT_NEAR(got.numbers[i], near.numbers[i], 1e-3f);
      }
    }
  }
}

TEST(DeviceMemoryDeathTest, IsOutOfReachBetweenOperations) {
  ThreadPool threads(1);
  GuardedBackend backend(threads);
  const OwnedTensor vector = write_vector(backend, std::vector<float>{1.0f, 2.0f});
  std::vector<float> staging;
  EXPECT_EQ(backend.read(vector.view, staging)[1], 2.0f);
  EXPECT_DEATH(
      {
        const volatile float* const element = vector.view.elements<float>();
        std::exit(*element > 0 ? 0 : 1);
      },
      "");
}

}  // namespace
}  // namespace paceline::testing
