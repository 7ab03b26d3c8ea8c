#include "server/item_response.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/server/served_fixture.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;

// The first token of each text, in the answer's order.
std::string first_ids(const ItemRequest& /*request*/, ItemAnswer answer,
                      const TokenNames& /*names*/) {
  std::string text;
  for (const auto& scored : answer.scored) text += std::to_string(scored.at(0).id) + " ";
  return text + "of " + std::to_string(answer.usage.prompt_tokens);
}

class ItemResponseTest : public ServedTest {
 protected:
  using ServedTest::ServedTest;

  void start(size_t num_inputs) {
    TokenScoreRequest request;
    for (size_t i = 0; i < num_inputs; ++i) {
      const auto id = static_cast<int32_t>(i % 20);
      request.input.prompts.emplace_back(std::vector<int32_t>{id, id + 1, id + 2});
    }
    PreparedItems prepared = prepare_items(
        model(), {.request = std::move(request), .id_prefix = "item-", .write = first_ids},
        rules());
    std::make_shared<ItemResponse>(call("/v1/score_tokens"), std::move(prepared))->start();
  }
};

TEST_F(ItemResponseTest, AnswersInTheOrderOfTheInputs) {
  serve();
  start(4);
  run_to_the_end();
  ASSERT_TRUE(exchange_->answer);
  EXPECT_EQ(exchange_->answer->body, "0 1 2 3 of 12");
  EXPECT_EQ(context_->metrics[0].completed, 1);
}

TEST_F(ItemResponseTest, MoreInputsThanTheQueueTakesGoInOneByOne) {
  serve({.limits = {
             .max_model_len = 64, .max_batched_tokens = 8, .max_num_seqs = 2, .max_queued = 4}});
  start(50);
  EXPECT_LE(engine_->queue().num_sequences(), 2);
  run_to_the_end();
  EXPECT_THAT(exchange_->answer->body, HasSubstr("of 150"));
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(ItemResponseTest, ClientThatGoesFreesTheEngine) {
  serve();
  start(30);
  turn();
  exchange_->close();
  while (turn()) {
  }
  EXPECT_EQ(free_blocks(), 64);
  EXPECT_EQ(context_->metrics[0].cancelled, 1);
  EXPECT_FALSE(exchange_->answer);
}

// Steps until a generation that comes after `num_before` steps has its answer.
class ItemWavesTest : public ItemResponseTest {
 protected:
  int64_t steps_of_another(size_t num_inputs, int num_before) {
    start(num_inputs);
    const auto items = exchange_;
    for (int i = 0; i < num_before; ++i) turn();
    EXPECT_TRUE(items->is_open());
    const auto channel = std::make_shared<Channel>();
    EXPECT_TRUE(engine_->submit({.prompt = {1, 2, 3}, .max_tokens = 1}, channel, 1));
    std::vector<TokenEvent> events;
    int64_t num_steps = 0;
    do {
      turn();
      ++num_steps;
      channel->poll(events);
    } while (events.empty() && num_steps < 1000);
    EXPECT_TRUE(items->is_open());
    return num_steps;
  }
};

TEST_F(ItemWavesTest, OthersWaitForFewSteps) {
  // Two inputs a step, then twenty.
  for (const int64_t num_rows : {6, 60}) {
    SCOPED_TRACE(num_rows);
    serve({.limits = {.max_model_len = 64,
                      .max_batched_tokens = num_rows,
                      .max_num_seqs = 256,
                      .max_queued = 2048}});
    EXPECT_LE(steps_of_another(2000, 20), num_rows == 6 ? 9 : 5);
    run_to_the_end();
    context_ = nullptr;
  }
}

TEST_F(ItemWavesTest, StepsAreFull) {
  serve({.limits = {.max_model_len = 64,
                    .max_batched_tokens = 60,
                    .max_num_seqs = 256,
                    .max_queued = 2048}});
  start(600);
  int64_t num_steps = 0;
  while (exchange_->is_open() && num_steps < 1000) {
    if (turn()) ++num_steps;
  }
  EXPECT_LE(num_steps, 600 / 20 + 10);
}

class FailingItemTest : public ItemResponseTest {
 protected:
  FailingItemTest()
      : ItemResponseTest([](int32_t token, int32_t position, std::span<float> logits) {
          count_up(token, position, logits);
          if (token == 6) logits[0] = std::numeric_limits<float>::quiet_NaN();
        }) {}
};

TEST_F(FailingItemTest, OneInputThatFailsFailsTheAnswerOnce) {
  serve();
  start(20);
  run_to_the_end();
  EXPECT_EQ(exchange_->answer->status, 500);
  while (turn()) {
  }
  EXPECT_EQ(context_->metrics[0].failed, 1);
  EXPECT_EQ(free_blocks(), 64);
}

}  // namespace
}  // namespace paceline::testing
