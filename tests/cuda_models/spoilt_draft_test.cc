// A drafted token whose row holds a NaN, and which is rejected, fails nobody and changes no bit.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/channel.h"
#include "engine/step_engine.h"
#include "kernels/backend.h"
#include "layers/kv_storage.h"
#include "runner/model_runner.h"
#include "tests/kernels/op_inputs.h"
#include "tests/models/test_model.h"
#include "tests/spec/scripted_drafters.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

constexpr TokenId kSpoilt = 200;
constexpr int64_t kDraftBlockSize = 16, kDraftBlocks = 40, kDraftLength = 96;

// Proposes tokens whose rows hold NaN.
class SpoiltDrafter : public ScriptedDrafter {
 protected:
  int32_t drafted(int32_t /*token*/, int64_t /*position*/) override { return kSpoilt; }
};

struct DraftedAnswer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::string failure;
};

// A model whose embedding of one token is NaN; no request draws the token.
class SpoiltModel {
 public:
  explicit SpoiltModel(DType kv_dtype)
      : kv_dtype_(kv_dtype),
        model_(read_golden("smolvlm_text_model_prefix").directory, {.backend = BackendKind::cuda,
                                                                    .num_threads = 2,
                                                                    .weight_dtype = DType::bf16,
                                                                    .kv_dtype = kv_dtype}) {
    const DecoderConfig& config = model_.config();
    Memory memory;
    const OwnedTensor embedding =
        random_tensor(memory, DType::f32, {config.vocab_size, config.hidden_size}, 1);
    std::fill_n(embedding.view.row<float>(kSpoilt), config.hidden_size,
                std::numeric_limits<float>::quiet_NaN());
    model_.decoder().set_embedding(model_.backend(), embedding.view);
  }

  std::map<RequestId, DraftedAnswer> answers(Drafter* drafter, SpeculationCounters& counters) {
    std::vector<CacheGroup> groups;
    for (const LayerGroup& group : cache_groups(model_.config())) {
      groups.push_back({.window = group.window, .num_blocks = kDraftBlocks});
    }
    StateCache cache(kDraftBlockSize, groups);
    const std::vector<int64_t> blocks(groups.size(), kDraftBlocks);
    ModelRunner runner(model_.decoder(), model_.backend(),
                       KvStorage(model_.decoder().kv_layers(blocks), kDraftBlockSize, kv_dtype_,
                                 model_.backend().memory()),
                       RunnerLimits{.max_rows = 64, .max_logits_rows = 32});
    Memory memory;
    StepEngine engine(runner, memory, cache,
                      {.max_model_len = kDraftLength,
                       .max_batched_tokens = 64,
                       .max_num_seqs = 4,
                       .max_run_steps = 1,
                       .speculation = {.num_tokens = 3, .adapts = false}},
                      {}, drafter);
    const auto channel = std::make_shared<Channel>();
    for (int32_t i = 0; i < 3; ++i) engine.submit(request(10 + 21 * i, i), channel);
    std::map<RequestId, DraftedAnswer> answers;
    std::vector<TokenEvent> events;
    for (bool more = true; more;) {
      more = engine.step();
      channel->poll(events);
      for (const TokenEvent& event : events) {
        DraftedAnswer& answer = answers[event.request];
        if (event.token) {
          answer.tokens.push_back(event.token->id);
          answer.logprobs.push_back(event.token->logprob);
        }
        if (event.ending && event.ending->error) answer.failure = event.ending->error->message;
      }
    }
    counters = engine.counters().speculation;
    return answers;
  }

 private:
  static GenerateRequest request(int32_t length, int32_t first) {
    GenerateRequest request{.prompt = {}, .max_tokens = 20};
    for (int32_t i = 0; i < length; ++i) request.prompt.push_back(3 + (first + 17 * i) % 190);
    request.sampling.temperature = 0;
    request.sampling.logit_bias = {{kSpoilt, -100.0f}};
    request.want_logprobs = true;
    return request;
  }

  DType kv_dtype_;
  TestModel model_;
};

TEST(CudaSpoiltDrafts, FailNobodyWhenTheyAreRejected) {
  for (const DType kv_dtype : cases_to_run<DType>({DType::f32, DType::bf16, DType::i8}, 1, 3, 3)) {
    SpoiltModel model(kv_dtype);
    SpeculationCounters none, drafted;
    const auto expected = model.answers(nullptr, none);
    SpoiltDrafter drafter;
    const auto found = model.answers(&drafter, drafted);
    EXPECT_GT(drafted.drafted_tokens, 100);
    EXPECT_EQ(drafted.accepted_tokens, 0);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [id, answer] : found) {
      EXPECT_EQ(answer.failure, "");
      EXPECT_EQ(answer.tokens.size(), 20u);
      EXPECT_EQ(answer.tokens, expected.at(id).tokens);
      EXPECT_EQ(answer.logprobs, expected.at(id).logprobs);
    }
  }
}

}  // namespace
}  // namespace paceline::testing
