#include "protocol/completed_responses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::ElementsAre;

constexpr const char* kModel = PACELINE_SOURCE_DIR "/models/paceline-10m";

const ResponseHead kCompletedHead{
    .id = "id-1", .created = 5, .model = "m", .system_fingerprint = {}};

// An answer of " sea" to a prompt of "The old", with two alternatives everywhere.
class CompletedResponses : public testing::Test {
 protected:
  Completion completion_of(uint64_t seed) const {
    Completion one;
    one.text = " sea";
    one.token_ids = tokenizer_.encode(" sea");
    one.finish_reason = "stop";
    for (const int32_t id : one.token_ids) one.logprobs.push_back(logprob(id, -0.5f));
    for (const int32_t id : tokenizer_.encode("The old")) {
      const bool is_first = one.prompt_logprobs.empty();
      one.prompt_logprobs.push_back(logprob(id, is_first ? std::nullopt : std::optional(-0.25f)));
    }
    one.usage = {.prompt_tokens = 3, .completion_tokens = 2, .cached_tokens = 1};
    one.seed = seed;
    return one;
  }

  static Logprob logprob(int32_t id, std::optional<float> value) {
    return {
        .id = id,
        .token = {},
        .logprob = value,
        .top = {{.id = 300, .token = {}, .logprob = -1}, {.id = 301, .token = {}, .logprob = -2}}};
  }

  ChoicesResponse answer(std::string_view body, size_t num_parts = 1, size_t n = 1) const {
    std::vector<CompletedPart> parts(num_parts);
    for (CompletedPart& part : parts) {
      for (size_t k = 0; k < n; ++k) part.choices.push_back(completion_of(k));
    }
    return completed_response(completion(body), parts, names_, kCompletedHead);
  }

  Tokenizer tokenizer_ = Tokenizer::load(kModel);
  TokenNames names_{&tokenizer_};
};

TEST_F(CompletedResponses, TheLikeliestOfMoreCandidatesAreTold) {
  CompletedPart part;
  // Mean log-probabilities of -1, -0.5, -1.5, -0.5, which their sums would order otherwise.
  for (const auto& [logprob, num_tokens] :
       {std::pair{-2.0, 2}, std::pair{-0.5, 1}, std::pair{-1.5, 1}, std::pair{-1.0, 2}}) {
    Completion& one = part.choices.emplace_back(completion_of(part.choices.size()));
    one.logprob = logprob;
    one.usage.completion_tokens = num_tokens;
  }
  const ChoicesResponse best =
      completed_response(completion(R"({"prompt": "The old", "n": 3, "best_of": 4})"),
                         std::span(&part, 1), names_, kCompletedHead);
  std::vector<uint64_t> seeds;
  for (const ResponseChoice& choice : best.choices) seeds.push_back(choice.seed);
  EXPECT_THAT(seeds, ElementsAre(1, 3, 0));
  EXPECT_EQ(best.choices[2].index, 2);
  EXPECT_EQ(best.usage.completion_tokens, 6) << "of all candidates";
}

std::string whole_completion(const ChoicesResponse& answer) {
  return writer_of(kCompletionDialect, R"({"prompt": "x"})")->whole(answer);
}

TEST_F(CompletedResponses, ANegativeSeedIsToldAsOne) {
  EXPECT_THAT(whole_completion(answer(R"({"prompt": "The old", "seed": -1})")),
              testing::HasSubstr("\"seed\":0"));
  std::vector<CompletedPart> parts(1);
  parts[0].choices.push_back(completion_of(UINT64_MAX));
  for (const auto& [seed, told] :
       {std::pair{"-1", "\"seed\":-1}"},
        std::pair{"18446744073709551615", "\"seed\":18446744073709551615}"}}) {
    const CompletionRequest request =
        completion(R"({"prompt": "The old", "seed": )" + std::string(seed) + "}");
    EXPECT_THAT(whole_completion(completed_response(request, parts, names_, kCompletedHead)),
                testing::HasSubstr(told));
  }
}

TEST_F(CompletedResponses, ChoicesStandByPromptAndPromptsCountOnce) {
  const ChoicesResponse both = answer(R"({"prompt": ["The old", "The old"], "n": 2})", 2, 2);
  ASSERT_EQ(both.choices.size(), 4u);
  EXPECT_EQ(both.choices[2].index, 2);
  EXPECT_EQ(both.choices[3].seed, 1u);
  EXPECT_EQ(both.choices[0].text, " sea");
  EXPECT_FALSE(both.choices[0].logprobs || both.choices[0].prompt_logprobs);
  EXPECT_FALSE(both.choices[0].token_ids);
  EXPECT_EQ(both.usage.prompt_tokens, 6);
  EXPECT_EQ(both.usage.cached_tokens, 2);
  EXPECT_EQ(both.usage.completion_tokens, 8);
}

TEST_F(CompletedResponses, ReportAsManyAlternativesAsAsked) {
  const ChoicesResponse asked = answer(
      R"({"prompt": "The old", "logprobs": 1, "prompt_logprobs": 0, "return_token_ids": true})");
  const ResponseChoice& choice = asked.choices[0];
  ASSERT_TRUE(choice.logprobs && choice.prompt_logprobs && choice.token_ids);
  EXPECT_EQ(choice.logprobs->front().top.size(), 1u);
  EXPECT_EQ(choice.logprobs->front().text_bytes, 4u);
  EXPECT_EQ(choice.prompt_logprobs->front().top.size(), 0u);
  EXPECT_EQ(choice.prompt_logprobs->front().text_bytes, 0u);
  EXPECT_EQ(choice.token_ids, tokenizer_.encode(" sea"));
}

TEST_F(CompletedResponses, AnEchoedPromptStandsInFrontAsTextOrAsTheTextOfItsIds) {
  const ChoicesResponse of_text = answer(R"({"prompt": "The old", "echo": true, "logprobs": 0})");
  EXPECT_EQ(of_text.choices[0].text, "The old sea");
  const auto& tokens = *of_text.choices[0].logprobs;
  ASSERT_EQ(tokens.size(), tokenizer_.encode("The old").size() + tokenizer_.encode(" sea").size());
  EXPECT_EQ(tokens.front().token.bytes, "The");
  EXPECT_EQ(tokens.front().text_bytes, 3u);
  std::string ids;
  for (const int32_t id : tokenizer_.encode("The old")) ids += "," + std::to_string(id);
  const std::string body = R"({"prompt": [)" + ids.substr(1) + R"(], "echo": true})";
  EXPECT_EQ(answer(body).choices[0].text, "The old sea");
}

TEST_F(CompletedResponses, WithoutATokenizerTokensAreIds) {
  CompletedPart part;
  part.choices.push_back(completion_of(0));
  part.choices[0].text.reset();
  const std::span<const CompletedPart> parts(&part, 1);
  const ChoicesResponse answer =
      completed_response(completion(R"({"prompt": [5], "echo": true, "logprobs": 0})"), parts,
                         TokenNames(nullptr), kCompletedHead);
  EXPECT_EQ(answer.choices[0].text, std::nullopt);
  EXPECT_EQ(answer.choices[0].token_ids, tokenizer_.encode(" sea"));
  EXPECT_EQ(answer.choices[0].logprobs->front().token.bytes, std::nullopt);
}

TEST_F(CompletedResponses, NoTokenNamesAreNeededWhereNoneAreTold) {
  for (const char* body :
       {R"({"prompt": "The old"})", R"({"prompt": "The old", "echo": true})",
        R"({"prompt": "The old", "logprobs": 0})", R"({"prompt": "The old", "prompt_logprobs": 0})",
        R"({"prompt": [300], "echo": true})", R"({"prompt": [300], "return_token_ids": true})"}) {
    SCOPED_TRACE(body);
    const CompletionRequest request = completion(body);
    CompletedPart part;
    part.choices.push_back(completion_of(0));
    const std::span<const CompletedPart> parts(&part, 1);
    const auto json = [&](const TokenNames& names) {
      return whole_completion(completed_response(request, parts, names, kCompletedHead));
    };
    EXPECT_EQ(json(names_) != json(TokenNames(nullptr)), names_tokens(request));
  }
  EXPECT_TRUE(names_tokens(chat(chat_body("\"logprobs\": true"))));
  EXPECT_TRUE(names_tokens(chat(chat_body("\"prompt_logprobs\": 0"))));
  EXPECT_FALSE(names_tokens(chat(chat_body("\"n\": 2"))));
}

TEST_F(CompletedResponses, AChatHasOnePromptAndItsOwnWayToAskForAlternatives) {
  CompletedPart part;
  part.choices = {completion_of(0), completion_of(1)};
  const ChoicesResponse answer = completed_response(
      chat(chat_body(
          R"("n": 2, "logprobs": true, "top_logprobs": 2, "return_tokens_as_token_ids": true)")),
      part, names_, kCompletedHead);
  ASSERT_EQ(answer.choices.size(), 2u);
  EXPECT_EQ(answer.choices[1].index, 1);
  EXPECT_EQ(answer.choices[1].logprobs->front().top.size(), 2u);
  EXPECT_EQ(answer.naming, TokenNaming::id);
  EXPECT_EQ(answer.usage.prompt_tokens, 3);
  EXPECT_EQ(answer.usage.completion_tokens, 4);
}

std::string whole_chat(const ChoicesResponse& answer) {
  return writer_of(kChatDialect, chat_body(R"("n": 2)"))->whole(answer);
}

TEST_F(CompletedResponses, APredictionsTokensAreCounted) {
  CompletedPart part;
  part.choices = {completion_of(0), completion_of(1)};
  for (Completion& one : part.choices) {
    one.usage.drafted_tokens = 7;
    one.usage.accepted_tokens = 5;
  }
  const ChoicesResponse plain =
      completed_response(chat(chat_body(R"("n": 2)")), part, names_, kCompletedHead);
  EXPECT_EQ(whole_chat(plain).find("completion_tokens_details"), std::string::npos);
  const ChoicesResponse predicted = completed_response(
      chat(chat_body(R"("n": 2, "prediction": {"type": "content", "content": "x"})")), part, names_,
      kCompletedHead);
  EXPECT_NE(
      whole_chat(predicted).find(R"("completion_tokens_details":{"accepted_prediction_tokens":10,)"
                                 R"("rejected_prediction_tokens":4}})"),
      std::string::npos);
}

TEST_F(CompletedResponses, AClassificationTellsWhatItHas) {
  std::vector<CompletedPart> parts(2);
  parts[0].classification = {
      .token_id = 7, .token = "x", .label = {}, .scores = {}, .logits = {1, 2}};
  parts[0].prompt_tokens = 3;
  parts[1].classification = {
      .token_id = 7, .token = {}, .label = "b", .scores = {0.25f, 0.75f}, .logits = {}};
  parts[1].prompt_tokens = 4;
  const auto answer = [&](std::string_view body) {
    return classification_response_json(
        classification(body),
        {.head = kCompletedHead, .usage = {.cached_tokens = 2}, .classified = parts});
  };
  EXPECT_THAT(answer(R"({"input": ["a", "b"]})"),
              testing::HasSubstr(
                  R"("token_id":7,"token":"x","label":null,"scores":null},)"
                  R"({"object":"classification","index":1,"token_id":7,"token":null,"label":"b",)"
                  R"("scores":[0.25,0.75]}],"usage":{"prompt_tokens":7,"completion_tokens":0,)"
                  R"("total_tokens":7}})"));
  EXPECT_THAT(answer(R"({"input": ["a", "b"], "with_logits": true})"),
              testing::HasSubstr(R"("scores":null,"logits":[1,2]})"));
}

TEST(NewHead, HasAnIdOfItsOwnAndTheTimeOfNow) {
  const ResponseHead head = new_head("chatcmpl-", "m");
  EXPECT_THAT(head.id, testing::StartsWith("chatcmpl-"));
  EXPECT_NE(head.id, new_head("chatcmpl-", "m").id);
  EXPECT_GT(head.created, 1'700'000'000);
  EXPECT_EQ(head.model, "m");
}

}  // namespace
}  // namespace paceline
