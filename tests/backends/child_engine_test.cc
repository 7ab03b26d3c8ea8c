// An engine on tests/backends/scripted_child.py, whose tokens count up, and which misbehaves as a
// prompt's first token says.
#include "backends/child_engine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/request_error.h"
#include "engine/engine_snapshot.h"
#include "engine/engine_thread.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kVocab = 32;
// What the first token of a prompt makes the child do.
constexpr TokenId kDies = 20, kHangs = 21, kFloodsWithLines = 22, kFloodsWithBytes = 23,
                  kWritesGarbage = 24, kFails = 25, kIsSlow = 26, kAnswersAnother = 27,
                  kDrawsNoToken = 28, kEndsAfterwards = 29, kIgnoresCancellations = 30;

TokenText letter(TokenId id) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEF";
  return {.bytes = kLetters.substr(static_cast<size_t>(id), 1), .is_special = id == 31};
}

GenerateRequest greedy(std::vector<TokenId> prompt, int64_t max_tokens) {
  GenerateRequest request{.prompt = std::move(prompt), .max_tokens = max_tokens};
  request.sampling.temperature = 0;
  request.eos_tokens = {31};
  return request;
}

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  int64_t releasable = 0;
  std::unique_ptr<PromptOutputs> prompt;
  std::unique_ptr<Ending> ending;

  std::string error() const { return ending && ending->error ? ending->error->message : ""; }
  FinishReason reason() const { return ending->finish.reason; }
};

class ChildEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("child_engine." + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override {
    engine_ = nullptr;
    expect_no_child();
    std::filesystem::remove_all(directory_);
  }

  // `model` says how it loads.
  ChildEngine& open(const std::string& model,
                    std::chrono::seconds timeout = std::chrono::seconds(60),
                    milliseconds cancel_timeout = milliseconds(10000)) {
    const auto path = directory_ / model;
    std::filesystem::create_directories(path);
    ChildEngine::Options options{.child = {.backend = "scripted",
                                           .python = "tests/backends/scripted_child.py",
                                           .model = path.string(),
                                           .timeout = timeout},
                                 .limits = {.max_model_len = 64, .max_queued = 8},
                                 .vocab_size = kVocab,
                                 .cancel_timeout = cancel_timeout};
    auto child = std::make_unique<ModelChild>(options.child);
    while (!child->is_ready()) child->poll(milliseconds(100));
    engine_ = std::make_unique<ChildEngine>(std::move(options), std::move(child), letter);
    return *engine_;
  }

  RequestId submit(GenerateRequest request) {
    const auto id = engine_->submit(std::move(request), channel_);
    EXPECT_TRUE(id.has_value());
    return id.value_or(-1);
  }
  bool step() {
    const bool more = engine_->step();
    std::vector<TokenEvent> events;
    channel_->poll(events);
    for (TokenEvent& event : events) {
      Answer& answer = answers_[{event.request, event.choice}];
      EXPECT_EQ(answer.ending, nullptr) << "an event after the last";
      if (event.token) {
        answer.tokens.push_back(event.token->id);
        answer.logprobs.push_back(event.token->logprob);
      }
      answer.releasable = event.releasable_bytes;
      if (event.prompt) answer.prompt = std::move(event.prompt);
      if (event.ending) answer.ending = std::move(event.ending);
    }
    return more;
  }
  void run_all() {
    while (step()) {
    }
  }
  const Answer& answer(RequestId id, int32_t choice = 0) { return answers_[{id, choice}]; }
  const Answer& run(GenerateRequest request) {
    const RequestId id = submit(std::move(request));
    run_all();
    return answer(id);
  }
  int64_t num_restarts() { return engine_->snapshot().backend->num_restarts; }

  static void expect_no_child() {
    int status = 0;
    EXPECT_EQ(::waitpid(-1, &status, WNOHANG), -1) << "a child or a zombie is left";
    EXPECT_EQ(errno, ECHILD);
  }
  static void expect_field(const std::string& field, const std::function<void()>& body) {
    const auto error = thrown_error(body);
    ASSERT_TRUE(error) << field;
    EXPECT_EQ(std::string(error->what()).substr(0, field.size() + 1), field + ":");
  }

  std::filesystem::path directory_;
  std::unique_ptr<ChildEngine> engine_;
  std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
  std::map<std::pair<RequestId, int32_t>, Answer> answers_;
};

TEST_F(ChildEngineTest, TokensComeAsTheChildDrawsThem) {
  open("model");
  const Answer& counted = run(greedy({1, 2, 3}, 4));
  EXPECT_EQ(counted.tokens, (std::vector<TokenId>{4, 5, 6, 7}));
  EXPECT_EQ(counted.reason(), FinishReason::length);
  EXPECT_EQ(counted.releasable, 4);
  EXPECT_EQ(counted.ending->stats.prompt_tokens, 3);
  EXPECT_EQ(counted.ending->stats.output_tokens, 4);
  EXPECT_EQ(engine_->num_running() + engine_->num_waiting() + engine_->queue().num_tokens(), 0);
  EXPECT_EQ(engine_->snapshot().backend->memory_bytes.value_or(0), 1000);
}

TEST_F(ChildEngineTest, OutputsEndAtEndTokensStopTokensAndStopStrings) {
  open("model");
  const Answer& at_eos = run(greedy({29, 28}, 20));
  EXPECT_EQ(at_eos.tokens, (std::vector<TokenId>{29, 30}));
  EXPECT_EQ(at_eos.reason(), FinishReason::stop);
  EXPECT_FALSE(at_eos.ending->finish.stop_token);
  EXPECT_EQ(at_eos.ending->stats.output_tokens, 3);

  GenerateRequest to_seven = greedy({1, 4}, 20);
  to_seven.stop_token_ids = {7};
  const Answer& at_token = run(to_seven);
  EXPECT_EQ(at_token.tokens, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(at_token.ending->finish.stop_token, 7);

  GenerateRequest to_text = greedy({1, 4}, 20);
  to_text.stop_strings = {"hi", "zz"};
  const Answer& at_text = run(to_text);  // "fghi"
  EXPECT_EQ(at_text.tokens, (std::vector<TokenId>{5, 6, 7, 8}));
  EXPECT_EQ(at_text.releasable, 2);
  EXPECT_EQ(at_text.ending->finish.stop_string, 0);

  GenerateRequest beyond = greedy({1, 30}, 3);
  beyond.ignore_eos = true;
  EXPECT_EQ(run(beyond).tokens, (std::vector<TokenId>{31, 0, 1}));
}

TEST_F(ChildEngineTest, RequestsAreServedInTheirOrder) {
  open("model");
  GenerateRequest later = greedy({1, 2}, 3);
  later.priority = 5;
  const RequestId last = submit(std::move(later));
  GenerateRequest of_two = greedy({1, 3}, 2);
  of_two.n = 2;
  const RequestId first = submit(std::move(of_two));
  step();
  EXPECT_EQ(engine_->unstarted_tags().size(), 1u);
  while (answer(last).ending == nullptr) step();
  for (const int32_t choice : {0, 1}) {
    ASSERT_NE(answer(first, choice).ending, nullptr);
    EXPECT_EQ(answer(first, choice).tokens, (std::vector<TokenId>{4, 5}));
  }
  run_all();
}

TEST_F(ChildEngineTest, AChildMayComputeSeveralAtOnce) {
  open("batches");
  const RequestId slow = submit(greedy({kIsSlow, 2}, 20));
  const RequestId quick = submit(greedy({1, 2}, 3));
  while (answer(quick).ending == nullptr) step();
  EXPECT_EQ(answer(slow).ending, nullptr);
  EXPECT_EQ(engine_->limits().max_num_seqs, 2);
  run_all();
  EXPECT_EQ(answer(slow).tokens.size(), 20u);
}

TEST_F(ChildEngineTest, PromptsAreScored) {
  open("model");
  GenerateRequest scored = greedy({1, 2, 3, 9}, 1);
  scored.score_from = 0;
  scored.columns = {10, 11};
  scored.want_row = true;
  scored.want_logprobs = true;
  scored.sampling.num_top_logprobs = 1;
  const Answer& both = run(scored);
  ASSERT_NE(both.prompt, nullptr);
  ASSERT_EQ(both.prompt->scored.size(), 4u);
  EXPECT_FALSE(both.prompt->scored[0].logprob);
  EXPECT_EQ(both.prompt->scored[2].logprob, -0.25f);
  EXPECT_EQ(both.prompt->scored[3].logprob, -4.0f);
  EXPECT_EQ(both.prompt->scored[3].top_logprobs.at(0).id, 4);
  EXPECT_EQ(both.prompt->column_logits, (std::vector<float>{8, 0}));
  EXPECT_EQ(both.prompt->row.size(), size_t{kVocab});
  EXPECT_EQ(both.logprobs, (std::vector<float>{-0.5}));
  EXPECT_EQ(both.ending->stats.logprob, -0.5);

  scored.max_tokens = 0;
  scored.score_from = 2;
  const Answer& prompt_alone = run(scored);
  EXPECT_EQ(prompt_alone.reason(), FinishReason::length);
  EXPECT_EQ(prompt_alone.prompt->scored.size(), 2u);
}

TEST_F(ChildEngineTest, WhatTheChildLacksIsRefusedByName) {
  ChildEngine& engine = open("model");
  const auto refuses = [&](const std::string& field, GenerateRequest request) {
    expect_field(field, [&] { engine.check(request); });
  };
  GenerateRequest request = greedy({1}, 4);
  EXPECT_NO_THROW(engine.check(request));
  request.sampling.top_k = -1;  // off
  request.sampling.top_p = 0.5;
  EXPECT_NO_THROW(engine.check(request));
  GenerateRequest biased = request;
  biased.sampling.logit_bias = {{3, 1.0f}};
  refuses("logit_bias", biased);
  GenerateRequest allowed = request;
  allowed.allowed_token_ids = {3};
  refuses("allowed_token_ids", allowed);
  GenerateRequest typical = request;
  typical.sampling.typical_p = 0.5;
  refuses("typical_p", typical);
  refuses("prompt_ids[0]", greedy({kVocab}, 4));
  typical.max_tokens = 0;
  EXPECT_NO_THROW(engine.check(typical)) << "nothing is drawn";

  ChildEngine& plain = open("plain");
  GenerateRequest sampled{.prompt = {1}, .max_tokens = 4};
  EXPECT_NO_THROW(plain.check(sampled));
  expect_field("temperature", [&] {
    GenerateRequest cold = greedy({1}, 4);
    plain.check(cold);
  });
  GenerateRequest scored{.prompt = {1}, .max_tokens = 0, .score_from = 0};
  expect_field("prompt_logprobs", [&] { plain.check(scored); });
}

TEST_F(ChildEngineTest, ACancelledRequestEndsAndTheNextOneFollows) {
  open("model");
  const RequestId slow = submit(greedy({kIsSlow, 2}, 60));
  std::stop_source stop;
  GenerateRequest waiting = greedy({1, 2}, 3);
  waiting.cancelled = stop.get_token();
  const RequestId waits = submit(std::move(waiting));
  while (answer(slow).tokens.empty()) step();
  stop.request_stop();
  engine_->cancel(slow);
  const RequestId next = submit(greedy({1, 2}, 3));
  while (answer(next).ending == nullptr) step();
  EXPECT_EQ(answer(slow).reason(), FinishReason::cancelled);
  EXPECT_LT(answer(slow).tokens.size(), 60u);
  EXPECT_EQ(answer(waits).reason(), FinishReason::cancelled);
  EXPECT_EQ(answer(next).tokens, (std::vector<TokenId>{3, 4, 5}));
  EXPECT_EQ(num_restarts(), 0);
}

TEST_F(ChildEngineTest, AChildThatGoesOnAfterACancellationIsReplaced) {
  open("model", std::chrono::seconds(60), milliseconds(200));
  const RequestId stubborn = submit(greedy({kIgnoresCancellations, 2}, 60));
  while (answer(stubborn).tokens.empty()) step();
  engine_->cancel(stubborn);
  EXPECT_EQ(run(greedy({1, 2}, 2)).tokens, (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(answer(stubborn).reason(), FinishReason::cancelled);
  EXPECT_EQ(num_restarts(), 1);
}

// Each fails its own request, is replaced for the next one, and leaves no zombie.
TEST_F(ChildEngineTest, AChildThatMisbehavesHarmsItsRequestAlone) {
  open("model", std::chrono::seconds(5));
  const std::pair<TokenId, const char*> faults[] = {
      {kDies, "the child has ended (signal 9): the last words"},
      {kHangs, "the child has written nothing within 5 s"},
      {kFloodsWithBytes, "a line of more than 64 MiB"},
      {kWritesGarbage, "scripted"},
      {kAnswersAnother, "answers nothing that is being computed"},
      {kDrawsNoToken, "token: found 32"},
  };
  int64_t restarts = 0;
  for (const auto& [token, words] : faults) {
    const RequestId bad = submit(greedy({token, 2}, 9));
    const RequestId good = submit(greedy({1, 2}, 3));
    run_all();
    EXPECT_EQ(answer(bad).tokens, (std::vector<TokenId>{3, 4})) << words;
    EXPECT_NE(answer(bad).error().find(words), std::string::npos) << answer(bad).error();
    EXPECT_EQ(answer(good).tokens, (std::vector<TokenId>{3, 4, 5})) << words;
    EXPECT_EQ(num_restarts(), ++restarts);
  }
  EXPECT_NE(run(greedy({kFails, 2}, 9)).error().find("RuntimeError: it went wrong"),
            std::string::npos);
  EXPECT_EQ(num_restarts(), restarts) << "an error that it says is no reason to replace it";
}

// The answer has come; what follows is nobody's.
TEST_F(ChildEngineTest, AFloodBehindTheLastTokenIsEnded) {
  open("model", std::chrono::seconds(60), milliseconds(100));
  EXPECT_EQ(run(greedy({kFloodsWithLines, 2}, 9)).tokens.size(), 9u);
  EXPECT_EQ(run(greedy({1, 2}, 2)).tokens, (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(num_restarts(), 1);
}

TEST_F(ChildEngineTest, AChildThatEndsWhileItIsIdleHarmsNobody) {
  open("model");
  EXPECT_EQ(run(greedy({kEndsAfterwards, 2}, 2)).tokens.size(), 2u);
  for (int i = 0; i < 100 && engine_->snapshot().backend->memory_bytes; ++i) {
    engine_->wait_for_mail(milliseconds(50));
  }
  expect_no_child();
  EXPECT_EQ(run(greedy({1, 2}, 2)).tokens, (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(num_restarts(), 1);
}

TEST_F(ChildEngineTest, AReplacementThatCantLoadFailsOneRequest) {
  open("once");
  run(greedy({kDies, 2}, 9));
  const RequestId unlucky = submit(greedy({1, 2}, 3));
  const RequestId lucky = submit(greedy({1, 2}, 3));
  run_all();
  EXPECT_NE(answer(unlucky).error().find("MemoryError: no memory is left"), std::string::npos);
  EXPECT_EQ(answer(lucky).tokens, (std::vector<TokenId>{3, 4, 5}));
}

TEST_F(ChildEngineTest, TheQueueIsLimitedAndItsEndIsAnAnswer) {
  open("model");
  for (int i = 0; i < 8; ++i) submit(greedy({kIsSlow, 2}, 60));
  EXPECT_FALSE(engine_->submit(greedy({1}, 1), channel_));
  step();
  engine_->end_all();
  std::vector<TokenEvent> events;
  channel_->poll(events);
  size_t num_ended = 0;
  for (const TokenEvent& event : events) num_ended += event.ending ? 1 : 0;
  EXPECT_EQ(num_ended, 8u);
  expect_no_child();
  expect_error(ErrorCode::cancelled, {"stopped"},
               [&] { engine_->submit(greedy({1}, 1), channel_); });
}

// As a server runs it: a thread steps, others submit and cancel.
TEST_F(ChildEngineTest, AnyThreadMaySubmit) {
  open("batches");
  EngineThread thread(*engine_, {});
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (TokenId i = 0; i < 5; ++i) {
        const auto channel = std::make_shared<Channel>();
        const auto id = engine_->submit(greedy({1, i}, 4), channel);
        if (!id) continue;
        if (caller == 3) engine_->cancel(*id);
        std::vector<TokenId> tokens;
        for (bool ended = false; !ended;) {
          std::vector<TokenEvent> events;
          channel->wait(events);
          for (const TokenEvent& event : events) {
            if (event.token) tokens.push_back(event.token->id);
            ended |= event.ending != nullptr;
          }
        }
        if (caller == 3) continue;
        EXPECT_EQ(tokens, (std::vector<TokenId>{i + 1, i + 2, i + 3, i + 4}));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ModelChild, OneThatCantLoadSaysWhy) {
  const auto load = [](const std::string& model) {
    ModelChild child({.backend = "scripted",
                      .python = "tests/backends/scripted_child.py",
                      .model = "/nowhere/" + model});
    while (!child.is_ready()) child.poll(milliseconds(100));
  };
  expect_error(ErrorCode::unsupported, {"scripted", "Model type odd not supported"},
               [&] { load("refused"); });
  expect_error(ErrorCode::internal, {"the child has ended (exit code 1): no such model"},
               [&] { load("dies"); });
}

}  // namespace
}  // namespace paceline
