#include "protocol/request_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(RequestOptions, SayWhatACompletionAsksFor) {
  const CompletionRequest request = completion(
      R"({"prompt": ["a", "b"], "max_tokens": 7, "temperature": 0.5, "top_p": 0.25, "top_k": 3,
          "min_p": 0.125, "repetition_penalty": 1.5, "frequency_penalty": 0.5,
          "presence_penalty": -0.5, "logit_bias": {"4": 2}, "seed": 9, "stop": "x",
          "stop_token_ids": [5], "ignore_eos": true, "add_special_tokens": false,
          "priority": 2, "cache_salt": "s",
          "min_tokens": 3, "include_stop_str_in_output": true, "truncate_prompt_tokens": 4, "bad_words": ["w"],
          "allowed_token_ids": [8], "logprobs": 1, "logprob_token_ids": [6], "skip_special_tokens": false})");
  const GenerateOptions options = completion_options(request, 1, 11, {});
  EXPECT_EQ(options.max_tokens, 7);
  EXPECT_EQ(options.temperature, 0.5f);
  EXPECT_EQ(options.top_p, 0.25f);
  EXPECT_EQ(options.top_k, 3);
  EXPECT_EQ(options.min_p, 0.125f);
  EXPECT_EQ(options.repetition_penalty, 1.5f);
  EXPECT_EQ(options.frequency_penalty, 0.5f);
  EXPECT_EQ(options.presence_penalty, -0.5f);
  EXPECT_THAT(options.logit_bias, ElementsAre(Pair(4, 2.0f)));
  EXPECT_EQ(options.seed, 9u);
  EXPECT_THAT(options.stop, ElementsAre("x"));
  EXPECT_THAT(options.stop_token_ids, ElementsAre(5));
  EXPECT_TRUE(options.ignore_eos);
  EXPECT_EQ(options.min_tokens, 3);
  EXPECT_TRUE(options.include_stop_in_output);
  EXPECT_EQ(options.truncate_prompt_tokens, 4);
  EXPECT_THAT(options.bad_words, ElementsAre("w"));
  EXPECT_THAT(options.allowed_token_ids, ElementsAre(8));
  EXPECT_THAT(options.logprob_token_ids, ElementsAre(6));
  EXPECT_FALSE(options.skip_special_tokens);
  EXPECT_FALSE(options.add_special_tokens);
  EXPECT_EQ(options.priority, 2);
  EXPECT_EQ(options.cache_salt, "s");
  EXPECT_EQ(options.prompt_name, "prompt[1]");
}

TEST(RequestOptions, CandidatesAreComparedByTheirLogprobs) {
  const auto logprobs = [](std::string_view members) {
    return completion_options(completion(completion_body(members)), 0, {}, {}).logprobs;
  };
  EXPECT_EQ(logprobs(R"("n": 2, "best_of": 3)"), 0);
  EXPECT_EQ(logprobs(R"("n": 2, "best_of": 3, "logprobs": 2)"), 2);
  EXPECT_EQ(logprobs(R"("n": 2, "best_of": 2)"), std::nullopt);
}

TEST(RequestOptions, TheDefaultSeedIsThatOfARequestWithoutOne) {
  EXPECT_EQ(completion_options(completion(completion_body("\"n\": 1")), 0, 11, {}).seed, 11u);
  EXPECT_EQ(chat_options(chat(chat_body("\"n\": 1")), {}, {}).seed, std::nullopt);
  EXPECT_EQ(chat_options(chat(chat_body("\"seed\": 3")), 11, {}).seed, 3u);
}

TEST(RequestOptions, AllOfThemAreCancelledByTheToken) {
  std::stop_source stop;
  stop.request_stop();
  const std::stop_token token = stop.get_token();
  EXPECT_TRUE(completion_options(completion(R"({"prompt": "x"})"), 0, {}, token)
                  .cancelled.stop_requested());
  EXPECT_TRUE(chat_options(chat(chat_body("\"n\": 1")), {}, token).cancelled.stop_requested());
  EXPECT_TRUE(classification_options(classification(R"({"input": "x"})"), 0, {}, token)
                  .sampling.cancelled.stop_requested());
}

// The engine reports as many alternatives of the answer as of the prompt.
TEST(RequestOptions, AskForTheLogProbabilitiesThatTheAnswerNeeds) {
  const auto asked = [](std::string_view members) {
    return completion_options(completion(completion_body(members)), 0, {}, {});
  };
  EXPECT_EQ(asked("\"n\": 1").logprobs, std::nullopt);
  EXPECT_FALSE(asked("\"logprobs\": 2").prompt_logprobs);
  EXPECT_EQ(asked("\"logprobs\": 0").logprobs, 0);
  EXPECT_EQ(asked("\"prompt_logprobs\": 0").logprobs, std::nullopt);
  EXPECT_TRUE(asked("\"prompt_logprobs\": 0").prompt_logprobs);
  EXPECT_EQ(asked("\"prompt_logprobs\": 1").logprobs, 1);
  EXPECT_EQ(asked("\"logprobs\": 2, \"prompt_logprobs\": 5").logprobs, 5);
  EXPECT_TRUE(asked("\"logprobs\": 2, \"echo\": true").prompt_logprobs);
  EXPECT_FALSE(asked("\"echo\": true").prompt_logprobs);

  const GenerateOptions of_chat =
      chat_options(chat(chat_body("\"logprobs\": true, \"top_logprobs\": 4")), {}, {});
  EXPECT_EQ(of_chat.logprobs, 4);
  EXPECT_FALSE(of_chat.prompt_logprobs);
  EXPECT_EQ(chat_options(chat(chat_body("\"n\": 2")), {}, {}).logprobs, std::nullopt);
}

TEST(RequestOptions, AClassificationDrawsATokenWhenNothingElseIsAsked) {
  const auto asked = [](std::string_view members) {
    return classification_options(classification(classification_body(members)), 0, {}, {});
  };
  EXPECT_TRUE(asked("\"with_logits\": false").want_token_id);
  const ClassifyOptions labelled = asked(R"("labels": ["a", "b"], "add_special_tokens": false)");
  EXPECT_FALSE(labelled.want_token_id);
  EXPECT_THAT(labelled.labels, ElementsAre("a", "b"));
  EXPECT_FALSE(labelled.sampling.add_special_tokens);
  EXPECT_EQ(labelled.sampling.prompt_name, "input");
}

}  // namespace
}  // namespace paceline
