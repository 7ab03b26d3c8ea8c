#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "protocol/logprobs_json.h"

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

const ResponseHead kHead{.id = "id-1", .created = 5, .model = "m", .system_fingerprint = "fp_1"};

NamedToken token(int32_t id, std::string bytes) { return {.id = id, .bytes = std::move(bytes)}; }

ReportedToken reported(NamedToken token, std::optional<float> logprob,
                       std::vector<RankedToken> top = {}) {
  const size_t size = token.bytes ? token.bytes->size() : 0;
  return {.token = std::move(token), .logprob = logprob, .top = std::move(top), .text_bytes = size};
}

std::string completion_logprobs(const std::vector<ReportedToken>& tokens, std::string_view text,
                                TokenNaming naming = TokenNaming::text) {
  std::string json;
  JsonWriter writer(json);
  write_completion_logprobs(writer, tokens, text, naming);
  return json;
}

std::string chat_logprobs(const std::vector<ReportedToken>& tokens,
                          TokenNaming naming = TokenNaming::text) {
  std::string json;
  JsonWriter writer(json);
  write_chat_logprobs(writer, tokens, naming);
  return json;
}

TEST(CompletionLogprobs, ATokenInsideACharacterStandsWhereThatBegins) {
  // "a", three tokens of "\u20ac", "b"
  const std::vector<ReportedToken> tokens = {
      reported(token(1, "a"), -1.0f), reported(token(2, "\xe2"), -1.0f),
      reported(token(3, "\x82"), -1.0f), reported(token(4, "\xac"), -1.0f),
      reported(token(5, "b"), -1.0f)};
  EXPECT_THAT(completion_logprobs(tokens,
                                  "a\xe2\x82\xac"
                                  "b"),
              testing::HasSubstr("\"text_offset\":[0,1,1,1,2]"));
}

TEST(Probabilities, HaveLlamaCppsShape) {
  std::string json;
  JsonWriter writer(json);
  write_probabilities(writer, std::vector{reported(token(1, "a"), -0.5f, {{token(2, "b"), -1.5f}})},
                      TokenNaming::text);
  EXPECT_EQ(json, R"([{"id":1,"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[)"
                  R"({"id":2,"token":"b","logprob":-1.5,"bytes":[98]}]}])");
}

TEST(CompletionResponse, HasEveryFieldInOrder) {
  ChoicesResponse answer{.head = kHead,
                         .choices = {},
                         .usage = {.prompt_tokens = 3, .completion_tokens = 2, .cached_tokens = 1}};
  ResponseChoice choice{.text = "a\"b",
                        .finish_reason = "stop",
                        .stop_reason = std::string("END"),
                        .logprobs = {},
                        .prompt_logprobs = {},
                        .token_ids = {},
                        .seed = UINT64_MAX};
  answer.choices.push_back(choice);
  choice = {.index = 1,
            .text = {},
            .finish_reason = "length",
            .stop_reason = 7,
            .logprobs = {},
            .prompt_logprobs = {},
            .token_ids = std::vector<int32_t>{4, 5},
            .seed = 0};
  answer.choices.push_back(choice);
  EXPECT_EQ(writer_of(kCompletionDialect, R"({"prompt": "x"})")->whole(answer),
            R"({"id":"id-1","object":"text_completion","created":5,"model":"m",)"
            R"("system_fingerprint":"fp_1","choices":[{"index":0,"text":"a\"b","logprobs":null,)"
            R"("finish_reason":"stop","stop_reason":"END","seed":18446744073709551615},)"
            R"({"index":1,"text":null,"logprobs":null,"finish_reason":"length","stop_reason":7,)"
            R"("token_ids":[4,5],"seed":0}],"usage":{"prompt_tokens":3,"completion_tokens":2,)"
            R"("total_tokens":5,"prompt_tokens_details":{"cached_tokens":1}}})");
}

TEST(ChatResponse, HasTheKeysThatMustBeThere) {
  ChoicesResponse answer{.head = {.id = "i", .created = 1, .model = "m", .system_fingerprint = {}},
                         .choices = {},
                         .usage = {.prompt_tokens = 1, .completion_tokens = 1}};
  ResponseChoice choice{.text = "Hi",
                        .finish_reason = "stop",
                        .stop_reason = {},
                        .logprobs = {},
                        .prompt_logprobs = {},
                        .token_ids = {},
                        .seed = 1};
  answer.choices.push_back(choice);
  choice.logprobs = {reported(token(1, "Hi"), -0.5f)};
  choice.index = 1;
  answer.choices.push_back(choice);
  EXPECT_EQ(writer_of(kChatDialect, chat_body(R"("n": 1)"))->whole(answer),
            R"({"id":"i","object":"chat.completion","created":1,"model":"m","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},)"
            R"("logprobs":null,"finish_reason":"stop","stop_reason":null,"seed":1},)"
            R"({"index":1,"message":{"role":"assistant","content":"Hi","refusal":null},"logprobs":)"
            R"({"content":[{"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[]}],)"
            R"("refusal":null},"finish_reason":"stop","stop_reason":null,"seed":1}],"usage":)"
            R"({"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}})");
}

TEST(ClassificationResponse, WhatAnInputHasNotGotIsNull) {
  ItemAnswer answer{.head = kHead};
  answer.head.system_fingerprint.clear();
  answer.classified.resize(2);
  answer.classified[0].classification = {.token_id = 3, .token = " x"};
  answer.classified[1].classification = {
      .label = " good", .scores = {0.75f, 0.25f}, .logits = {1, -2.5f}};
  answer.classified[1].prompt_tokens = 4;
  const auto request = classification(R"({"input": ["a", "b"], "with_logits": true})");
  EXPECT_EQ(classification_response_json(request, answer),
            R"({"id":"id-1","object":"list","created":5,"model":"m","data":[)"
            R"({"object":"classification","index":0,"token_id":3,"token":" x","label":null,)"
            R"("scores":null,"logits":[]},{"object":"classification","index":1,"token_id":null,)"
            R"("token":null,"label":" good","scores":[0.75,0.25],"logits":[1,-2.5]}],)"
            R"("usage":{"prompt_tokens":4,"completion_tokens":0,"total_tokens":4}})");
}

TEST(Logprobs, OfCompletionsAreFourArrays) {
  const std::vector<ReportedToken> tokens = {
      reported(token(1, "Zoë"), {}),
      reported(token(2, " b"), -1.5f, {{token(3, " c"), -1.0f}, {token(2, " b"), -1.5f}}),
      reported(token(4, "!"), -2.0f, {{token(3, " c"), -1.0f}})};
  EXPECT_EQ(completion_logprobs(tokens, "Zoë b!"),
            R"({"tokens":["Zoë"," b","!"],"token_logprobs":[null,-1.5,-2],"top_logprobs":)"
            R"([null,{" c":-1," b":-1.5},{" c":-1,"!":-2}],"text_offset":[0,3,5]})");
}

TEST(Logprobs, OffsetsStayInsideATextThatAStopCutShort) {
  std::vector<ReportedToken> tokens = {reported(token(1, "ab"), -1.0f),
                                       reported(token(2, "cd"), -1.0f),
                                       reported(token(3, "ef"), -1.0f)};
  EXPECT_NE(completion_logprobs(tokens, "abc").find(R"("text_offset":[0,2,3])"), std::string::npos);
}

TEST(Logprobs, TokensThatAreNoTextKeepDifferentNames) {
  const std::vector<ReportedToken> tokens = {reported(
      token(1, "\xe2\x80"), -1.0f, {{token(1, "\xe2\x80"), -1.0f}, {token(2, "\xe2\x81"), -2.0f}})};
  EXPECT_EQ(completion_logprobs(tokens, "\u201c"),
            R"({"tokens":["bytes:\\xe2\\x80"],"token_logprobs":[-1],"top_logprobs":)"
            R"([{"bytes:\\xe2\\x80":-1,"bytes:\\xe2\\x81":-2}],"text_offset":[0]})");
  EXPECT_EQ(chat_logprobs(tokens),
            "[{\"token\":\"\uFFFD\",\"logprob\":-1,\"bytes\":[226,128],\"top_logprobs\":"
            "[{\"token\":\"\uFFFD\",\"logprob\":-1,\"bytes\":[226,128]},"
            "{\"token\":\"\uFFFD\",\"logprob\":-2,\"bytes\":[226,129]}]}]");
}

TEST(Logprobs, OfTwoAlternativesWithOneNameTheLikelierStays) {
  const std::vector<ReportedToken> tokens = {
      reported(token(9, "A"), -3.0f, {{token(1, "A"), -1.0f}, {token(2, "B"), -2.0f}})};
  EXPECT_NE(completion_logprobs(tokens, "A").find(R"([{"A":-1,"B":-2}])"), std::string::npos);
}

TEST(Logprobs, TokensWithoutTextAreNamedByTheirIds) {
  const std::vector<ReportedToken> tokens = {
      reported({.id = 8, .bytes = {}}, -1.0f, {{{.id = 9, .bytes = {}}, -0.5f}})};
  EXPECT_EQ(completion_logprobs(tokens, ""),
            R"({"tokens":["token_id:8"],"token_logprobs":[-1],"top_logprobs":)"
            R"([{"token_id:9":-0.5,"token_id:8":-1}],"text_offset":[0]})");
  EXPECT_EQ(chat_logprobs(tokens),
            R"([{"token":"token_id:8","logprob":-1,"bytes":null,"top_logprobs":)"
            R"([{"token":"token_id:9","logprob":-0.5,"bytes":null}]}])");
  EXPECT_EQ(chat_logprobs({reported(token(8, "x"), -1.0f)}, TokenNaming::id),
            R"([{"token":"token_id:8","logprob":-1,"bytes":[120],"top_logprobs":[]}])");
}

TEST(Logprobs, TheImpossibleIsVeryUnlikely) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_NE(chat_logprobs({reported(token(1, "x"), -infinity)}).find(R"("logprob":-9999,)"),
            std::string::npos);
  EXPECT_NE(chat_logprobs({reported(token(1, "x"), -20000.0f)}).find(R"("logprob":-9999,)"),
            std::string::npos);
}

TEST(Logprobs, OfPromptsAreKeyedByIds) {
  std::string json;
  JsonWriter writer(json);
  write_prompt_logprobs(
      writer, std::vector<ReportedToken>{reported(token(1, "a"), {}),
                                         reported(token(2, "b"), -2.0f, {{token(3, "c"), -1.0f}}),
                                         reported(token(3, "c"), -1.0f, {{token(3, "c"), -1.0f}})});
  EXPECT_EQ(json, R"([null,{"3":{"logprob":-1,"rank":1,"decoded_token":"c"},)"
                  R"("2":{"logprob":-2,"rank":null,"decoded_token":"b"}},)"
                  R"({"3":{"logprob":-1,"rank":1,"decoded_token":"c"}}])");
}

TEST(RandomId, IsNeverTheSame) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(random_id("cmpl-"));
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(ids.begin()->size(), 5u + 24u);
  EXPECT_EQ(ids.begin()->find_first_not_of("0123456789abcdef", 5), std::string::npos);
}

TEST(Timings, HaveDraftsOnlyWhereSomethingWasDrafted) {
  const auto json_of = [](const Usage& tokens) {
    std::string json;
    JsonWriter writer(json);
    writer.begin_object();
    write_timings(writer, {.tokens = tokens, .times = {}});
    writer.end_object();
    return json;
  };
  EXPECT_EQ(json_of({.completion_tokens = 5}).find("draft_n"), std::string::npos);
  EXPECT_NE(json_of({.completion_tokens = 5, .drafted_tokens = 4, .accepted_tokens = 3})
                .find(R"("draft_n":4,"draft_n_accepted":3})"),
            std::string::npos);
}

}  // namespace
}  // namespace paceline
