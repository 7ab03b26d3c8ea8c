// Requests with adapters: which rows get them, who shares a prefix, how long they live.
#include <gtest/gtest.h>

#include <cmath>

#include "runner/loaded_adapter.h"
#include "tests/engine/engine_fixture.h"
#include "tests/expect_error.h"

namespace paceline::testing {
namespace {

// Token t is followed by t + 1 + k with adapter k.
void count_by_adapter(int32_t token, int32_t /*position*/, std::span<float> logits) {
  const int32_t adapter = token / kAdapterStep;
  logits[static_cast<size_t>((token % kAdapterStep + 1 + adapter) % kVocab)] = 20.0f;
}

class EngineAdapters : public EngineTest {
 protected:
  EngineAdapters() : EngineTest(count_by_adapter) {}

  static Shape shape(int64_t max_adapters) {
    return {
        .limits = {.max_model_len = 64, .max_batched_tokens = 64, .max_adapters = max_adapters}};
  }
  static GenerateRequest with(std::shared_ptr<const LoadedAdapter> adapter,
                              std::vector<TokenId> prompt = {1}, int64_t max_tokens = 4) {
    GenerateRequest request = greedy(std::move(prompt), max_tokens);
    request.adapter = std::move(adapter);
    return request;
  }
};

TEST_F(EngineAdapters, EachRequestIsComputedWithItsOwn) {
  engine(shape(2));
  const RequestId base = submit(with(nullptr));
  const RequestId first = submit(with(numbered_adapter(1)));
  const RequestId second = submit(with(numbered_adapter(2)));
  run_all();
  EXPECT_EQ(answer(base).tokens, (std::vector<TokenId>{2, 3, 4, 5}));
  EXPECT_EQ(answer(first).tokens, (std::vector<TokenId>{3, 5, 7, 9}));
  EXPECT_EQ(answer(second).tokens, (std::vector<TokenId>{4, 7, 10, 13}));
}

TEST_F(EngineAdapters, RowsOfOneAdapterAreNeighbours) {
  engine(shape(4));
  const auto first = numbered_adapter(1), second = numbered_adapter(2);
  for (int i = 0; i < 3; ++i) {
    submit(with(second));
    submit(with(nullptr));
    submit(with(first));
  }
  step();
  step();
  const std::vector<AdapterRows> expected = {{.first_row = 3, .num_rows = 3, .adapter = 1},
                                             {.first_row = 6, .num_rows = 3, .adapter = 2}};
  EXPECT_EQ(runner_.adapters, expected) << "behind the rows without";
  EXPECT_EQ(runner_.row_adapter(3), 2) << "the one that came first";
  EXPECT_EQ(runner_.row_adapter(6), 1);
  run_all();
}

TEST_F(EngineAdapters, NoMoreThanTheLimitAreComputedAtOnce) {
  engine(shape(1));
  std::vector<RequestId> ids;
  for (const size_t k : {1, 1, 2, 1, 0, 3}) {
    ids.push_back(submit(with(k == 0 ? nullptr : numbered_adapter(k))));
  }
  run_all();
  EXPECT_EQ(runner_.most_adapters, 1);
  for (const RequestId id : ids) EXPECT_EQ(answer(id).tokens.size(), 4u);
}

TEST_F(EngineAdapters, AnEngineWithoutThemRefusesThem) {
  engine(shape(0));
  expect_error(ErrorCode::invalid, {"adapter", "--enable-lora"},
               [&] { engine_->submit(with(numbered_adapter(1)), channel_); });
}

TEST_F(EngineAdapters, PrefixesAreSharedByRequestsOfEqualAdaptersOnly) {
  engine(shape(2));
  const std::vector<TokenId> prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto cached = [&](std::shared_ptr<const LoadedAdapter> adapter) {
    return run(with(std::move(adapter), prompt)).ending->stats.cached_tokens;
  };
  const auto first = numbered_adapter(1);
  EXPECT_EQ(cached(nullptr), 0);
  EXPECT_EQ(cached(first), 0);
  EXPECT_EQ(cached(numbered_adapter(2)), 0);
  EXPECT_EQ(cached(nullptr), 8);
  EXPECT_EQ(cached(first), 8);
  EXPECT_EQ(cached(numbered_adapter(1)), 8) << "the same content, loaded again";
}

TEST_F(EngineAdapters, AHeldPrefixIsTheAdapters) {
  engine(shape(2));
  GenerateRequest hold = with(numbered_adapter(1), {1, 2, 3, 4}, 0);
  hold.prefix.hold = true;
  const RequestId held = submit(hold);
  run_all();
  EXPECT_EQ(run(with(nullptr, {1, 2, 3, 4, 5})).ending->stats.cached_tokens, 0);
  EXPECT_EQ(run(with(numbered_adapter(1), {1, 2, 3, 4, 5})).ending->stats.cached_tokens, 4);
  engine_->release(held);
  run_all();
}

TEST_F(EngineAdapters, ChoicesScoresAndClassesUseThem) {
  engine(shape(1));
  GenerateRequest request = with(numbered_adapter(2), {1, 4, 7}, 3);
  request.n = 3;
  request.score_from = 0;
  request.columns = {10, 8};
  const RequestId id = submit(request);
  run_all();
  for (int32_t k = 0; k < 3; ++k) {
    EXPECT_EQ(answer(id, k).tokens, (std::vector<TokenId>{10, 13, 16}));
  }
  const PromptOutputs& outputs = *answer(id).prompt;
  EXPECT_EQ(outputs.column_logits, (std::vector<float>{20.0f, 0.0f}));
  ASSERT_EQ(outputs.scored.size(), 3u);
  EXPECT_GT(outputs.scored[1].logprob, -0.01f) << "4 follows 1 with adapter 2";
}

// Without an owner but the requests, an adapter goes with the last of them.
TEST_F(EngineAdapters, ItLivesAsLongAsARequestUsesIt) {
  engine(shape(1));
  std::weak_ptr<const LoadedAdapter> watched;
  {
    auto adapter = numbered_adapter(1);
    watched = adapter;
    submit(with(adapter, {1}, 2));
    submit(with(adapter, {2}, 5));
  }
  for (int i = 0; i < 4; ++i) {
    step();
    EXPECT_FALSE(watched.expired()) << i;
  }
  run_all();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace paceline::testing
