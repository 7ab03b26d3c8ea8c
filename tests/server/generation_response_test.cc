#include "server/generation_response.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/json.h"
#include "tests/server/served_fixture.h"

namespace paceline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An API of the test's own: what the core tells, in words.
class WordWriter final : public ChoiceWriter {
 public:
  std::string_view id_prefix() const override { return "word-"; }
  std::string whole(const ChoicesResponse& answer) override {
    std::string text = "whole";
    for (const ResponseChoice& choice : answer.choices) text += ids(choice.token_ids);
    return text;
  }
  void begin(const AnswerStart& start, std::string& out) override {
    out += "begin " + std::to_string(start.usage.prompt_tokens) + "\n";
  }
  void chunk(const ResponseChunk& chunk, std::string& out) override {
    out += std::to_string(chunk.index) + ids(chunk.token_ids) +
           (chunk.ending != nullptr ? " " + chunk.ending->finish_reason : "") + "\n";
  }
  void end(const ResponseUsage& usage, std::string& out) override {
    out += "end " + std::to_string(usage.completion_tokens) + "\n";
  }
  void fail(const ApiError& error, std::string& out) override { out += "fail " + error.message; }
  void ping(std::string& out) override { out += "ping\n"; }

 private:
  static std::string ids(const std::optional<std::vector<int32_t>>& tokens) {
    std::string text;
    for (const int32_t id : tokens.value_or(std::vector<int32_t>())) {
      text += " " + std::to_string(id);
    }
    return text;
  }
};

class GenerationResponseTest : public ServedTest {
 protected:
  using ServedTest::ServedTest;

  void start(std::vector<std::vector<int32_t>> prompts, int64_t max_tokens, bool is_streamed,
             int32_t n = 1) {
    CompletionRequest request;
    for (auto& prompt : prompts) request.prompt.prompts.emplace_back(std::move(prompt));
    request.options.max_tokens = max_tokens;
    request.options.temperature = 0;
    request.generation.n = n;
    request.generation.streaming.stream = is_streamed;
    PreparedGeneration prepared = prepare_generation(
        model(), {.request = std::move(request), .writer = std::make_unique<WordWriter>()},
        rules());
    std::make_shared<GenerationResponse>(call("/generate"), std::move(prepared))->start();
  }
};

TEST_F(GenerationResponseTest, WholeAnswerComesOnceAtTheEnd) {
  serve();
  start({{1}, {10, 11}}, 2, false);
  EXPECT_FALSE(exchange_->answer);
  run_to_the_end();
  ASSERT_TRUE(exchange_->answer);
  EXPECT_EQ(exchange_->answer->status, 200);
  EXPECT_EQ(exchange_->answer->body, "whole 2 3 12 13");
  EXPECT_EQ(context_->metrics[0].completed, 1);
  EXPECT_EQ(context_->in_flight.num_in_flight(), 0);
}

TEST_F(GenerationResponseTest, StreamTellsEachTokenAsItComes) {
  serve();
  start({{1}}, 3, true);
  turn();
  EXPECT_THAT(exchange_->pieces, ElementsAre("begin 1\n0 2\n"));
  run_to_the_end();
  EXPECT_EQ(exchange_->written(), "begin 1\n0 2\n0 3\n0 4 length\nend 3\n");
  EXPECT_TRUE(exchange_->is_ended);
}

TEST_F(GenerationResponseTest, ChoicesOfAllPromptsShareOneStream) {
  serve();
  start({{1}, {10}}, 1, true, 2);
  run_to_the_end();
  for (const char* line : {"0 2 length\n", "1 2 length\n", "2 11 length\n", "3 11 length\n"}) {
    EXPECT_THAT(exchange_->written(), HasSubstr(line));
  }
  EXPECT_THAT(exchange_->written(), HasSubstr("begin 2\n"));
  EXPECT_THAT(exchange_->written(), HasSubstr("end 4\n"));
}

TEST_F(GenerationResponseTest, ClientThatGoesFreesTheEngine) {
  serve();
  start({{1}}, 50, true);
  turn();
  exchange_->close();
  while (turn()) {
  }
  EXPECT_EQ(free_blocks(), 64);
  EXPECT_EQ(context_->metrics[0].cancelled, 1);
  EXPECT_EQ(exchange_->pieces.size(), 1u) << "nothing is written to nobody";
  EXPECT_EQ(context_->in_flight.num_in_flight(), 0);
}

TEST_F(GenerationResponseTest, FullQueueIsToldBeforeAnythingIsSent) {
  serve({.limits = {
             .max_model_len = 64, .max_batched_tokens = 8, .max_num_seqs = 1, .max_queued = 2}});
  start({{1}}, 30, true);
  const auto first = exchange_;
  start({{1}}, 30, true);
  start({{1}}, 30, true);
  ASSERT_TRUE(exchange_->answer);
  EXPECT_EQ(exchange_->answer->status, 429);
  EXPECT_FALSE(first->answer);
}

TEST_F(GenerationResponseTest, ReaderThatLagsGetsItsTokensInOneChunk) {
  options_.soft_buffer_bytes = 100;
  serve();
  start({{1}}, 4, true);
  turn();
  exchange_->num_buffered = 200;
  turn();
  turn();
  EXPECT_EQ(exchange_->pieces.size(), 1u);
  exchange_->num_buffered = 0;
  run_to_the_end();
  EXPECT_EQ(exchange_->written(), "begin 1\n0 2\n0 3 4 5 length\nend 4\n");
}

TEST_F(GenerationResponseTest, ReaderThatReadsNothingIsCutOff) {
  options_.hard_buffer_bytes = 1000;
  serve();
  start({{1}}, 40, true);
  turn();
  exchange_->num_buffered = 2000;
  turn();
  EXPECT_TRUE(exchange_->is_aborted);
  EXPECT_EQ(context_->metrics[0].slow_readers, 1);
  while (turn()) {
  }
  EXPECT_EQ(free_blocks(), 64);
}

TEST_F(GenerationResponseTest, SilentStreamPings) {
  options_.ping_time = std::chrono::milliseconds(0);
  serve();
  start({{1}}, 4, true);
  turn();
  for (const auto& response : context_->host.look(0)->link.responses()) response->tick();
  EXPECT_THAT(exchange_->written(), ::testing::EndsWith("ping\n"));
}

void count_up_to_nan(int32_t token, int32_t position, std::span<float> logits) {
  count_up(token, position, logits);
  if (position == 3) logits[0] = std::numeric_limits<float>::quiet_NaN();
}

class FailingGenerationTest : public GenerationResponseTest {
 protected:
  FailingGenerationTest() : GenerationResponseTest(count_up_to_nan) {}
};

TEST_F(FailingGenerationTest, BrokenStreamEndsWithTheError) {
  serve();
  start({{1}}, 30, true);
  run_to_the_end();
  EXPECT_THAT(exchange_->written(), HasSubstr("begin 1\n0 2\n0 3\n"));
  EXPECT_THAT(exchange_->written(), HasSubstr("fail "));
  EXPECT_THAT(exchange_->written(), ::testing::Not(HasSubstr("end ")));
  EXPECT_EQ(context_->metrics[0].failed, 1);
}

TEST_F(FailingGenerationTest, WholeAnswerIsTheRoutesError) {
  serve();
  start({{1}}, 30, false);
  run_to_the_end();
  EXPECT_EQ(exchange_->answer->status, 500);
  EXPECT_THAT(exchange_->answer->body, HasSubstr("numerical_error"));
}

}  // namespace
}  // namespace paceline::testing
