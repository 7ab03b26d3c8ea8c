// An engine on a scripted runner that counts up, and a caller that collects the results.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/channel.h"
#include "engine/step_engine.h"
#include "tests/engine/scripted_runner.h"

namespace paceline::testing {

constexpr int64_t kVocab = 32;
constexpr TokenId kEos = 31;

// Token t is followed by t + 1, with certainty; token i < 26 is the letter 'a' + i, and tokens 27
// to 29 are several letters.
inline void count_up(int32_t token, int32_t /*position*/, std::span<float> logits) {
  logits[static_cast<size_t>((token + 1) % kVocab)] = 20.0f;
}

inline TokenText letter(TokenId id) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  if (id == 27) return {.bytes = "bc"};
  if (id == 28) return {.bytes = "abc"};
  if (id == 29) return {.bytes = "yz"};
  if (id == 30) return {.bytes = "<30>", .is_special = true};
  return {.bytes = kLetters.substr(std::min(static_cast<size_t>(id), kLetters.size()), 1)};
}

inline GenerateRequest greedy(std::vector<TokenId> prompt, int64_t max_tokens) {
  GenerateRequest request{.prompt = std::move(prompt), .max_tokens = max_tokens};
  request.sampling.temperature = 0;
  request.eos_tokens = {kEos};
  return request;
}

// The results of one choice of a request.
struct Answer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::vector<int64_t> releasable;
  std::unique_ptr<PromptOutputs> prompt;
  std::unique_ptr<Ending> ending;
};

class EngineTest : public ::testing::Test {
 protected:
  explicit EngineTest(Script script = count_up) : runner_(kVocab, std::move(script)) {}

  struct Shape {
    int64_t num_blocks = 64;
    int64_t block_size = 2;
    EngineLimits limits = {.max_model_len = 64, .max_batched_tokens = 4};
    std::vector<CacheGroup> groups = {};  // instead of one of num_blocks
    Drafter* drafter = nullptr;
  };
  StepEngine& engine() { return engine(Shape{}); }
  StepEngine& engine(const Shape& shape) {
    auto groups = shape.groups;
    if (groups.empty()) groups.push_back({.window = 0, .num_blocks = shape.num_blocks});
    if (groups.back().is_recurrent && !groups.back().holds_open_rows) {
      groups.push_back({.num_blocks = std::max<int64_t>(shape.limits.max_num_seqs, 1),
                        .is_recurrent = true,
                        .holds_open_rows = true});
    }
    engine_.reset();
    answers_.clear();
    cache_ = std::make_unique<StateCache>(shape.block_size, groups);
    runner_.watch(cache_.get());
    engine_ = std::make_unique<StepEngine>(runner_, memory_, *cache_, shape.limits, letter,
                                           shape.drafter);
    return *engine_;
  }

  RequestId submit(GenerateRequest request) {
    const auto id = engine_->submit(std::move(request), channel_);
    EXPECT_TRUE(id.has_value());
    return id.value_or(-1);
  }

  // Runs one step and takes its events.
  bool step() {
    const bool more = engine_->step();
    engine_->check_integrity();
    std::vector<TokenEvent> events;
    channel_->poll(events);
    for (TokenEvent& event : events) {
      Answer& answer = answers_[{event.request, event.choice}];
      EXPECT_EQ(answer.ending, nullptr) << "an event after the last";
      if (event.token) {
        answer.tokens.push_back(event.token->id);
        answer.logprobs.push_back(event.token->logprob);
      }
      answer.releasable.push_back(event.releasable_bytes);
      if (event.prompt) answer.prompt = std::move(event.prompt);
      if (event.ending) answer.ending = std::move(event.ending);
    }
    return more;
  }
  void run_all() {
    while (step()) {
    }
  }
  const Answer& answer(RequestId id, int32_t choice = 0) { return answers_.at({id, choice}); }
  const Answer& run(GenerateRequest request) {
    const RequestId id = submit(std::move(request));
    run_all();
    return answer(id);
  }

  int64_t free_blocks() const { return cache_->pool(0).num_free(); }

  Memory memory_;
  ScriptedRunner runner_;
  std::unique_ptr<StateCache> cache_;
  std::unique_ptr<StepEngine> engine_;
  std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
  std::map<std::pair<RequestId, int32_t>, Answer> answers_;
};

}  // namespace paceline::testing
