#include "protocol/response.h"

#include <gtest/gtest.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

std::string chat_json(const ResponseHead& head, const ResponseChunk& chunk,
                      std::string_view members = R"("n": 1)") {
  return event_json(kChatDialect, chat_body(members), head, chunk);
}
std::string completion_json(const ResponseHead& head, const ResponseChunk& chunk) {
  return event_json(kCompletionDialect, R"({"prompt": "x"})", head, chunk);
}
std::string generate_json(const ResponseHead& head, const ResponseChunk& chunk) {
  return event_json(kGenerateDialect, R"({"prompt": "x"})", head, chunk);
}

ResponseHead chunk_head() {
  return {.id = "x-1", .created = 7, .model = "m", .system_fingerprint = {}};
}

TEST(ResponseChunk, AChatBeginsWithItsRole) {
  const ResponseChunk chunk{.index = 1, .has_role = true, .text = ""};
  EXPECT_EQ(chat_json(chunk_head(), chunk),
            R"({"id":"x-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[)"
            R"({"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,)"
            R"("finish_reason":null}]})");
}

TEST(ResponseChunk, ReasoningHasOneName) {
  const TurnDelta delta{.reasoning = "hm", .content = {}};
  ResponseHead of = chunk_head();
  EXPECT_NE(chat_json(of, {.turn = &delta}).find(R"("delta":{"reasoning_content":"hm"})"),
            std::string::npos);
  of.reasoning_field = "reasoning";
  EXPECT_NE(chat_json(of, {.turn = &delta}).find(R"("delta":{"reasoning":"hm"})"),
            std::string::npos);
}

constexpr std::string_view kWithUsage =
    R"("stream": true, "stream_options": {"include_usage": true})";

TEST(ResponseChunk, UsageIsNullWhereALastChunkWillHaveIt) {
  const ResponseChunk chunk{.text = "Hi"};
  EXPECT_EQ(chat_json(chunk_head(), chunk, kWithUsage),
            R"({"id":"x-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[)"
            R"({"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],)"
            R"("usage":null})");
  std::string out;
  const auto writer = writer_of(kChatDialect, chat_body(kWithUsage));
  writer->begin({.head = chunk_head(), .num_choices = 0}, out);
  writer->end({.prompt_tokens = 5, .completion_tokens = 1, .cached_tokens = {}}, out);
  EXPECT_EQ(out,
            R"(data: {"id":"x-1","object":"chat.completion.chunk","created":7,"model":"m",)"
            R"("choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}})"
            "\n\ndata: [DONE]\n\n");
}

TEST(ResponseChunk, TheLastOneHasTheReason) {
  ResponseChoice ending{.finish_reason = "stop", .stop_reason = 3, .seed = 9};
  ending.token_ids = {{1, 2, 3}};
  const ResponseChunk chunk{.text = "", .token_ids = {{3}}, .ending = &ending};
  EXPECT_EQ(completion_json(chunk_head(), chunk),
            R"({"id":"x-1","object":"text_completion","created":7,"model":"m","choices":[)"
            R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":3,)"
            R"("token_ids":[3],"seed":9}]})");
  EXPECT_NE(chat_json(chunk_head(), chunk).find(R"("delta":{})"), std::string::npos);
}

TEST(ResponseChunk, AGeneratedPieceHasItsTextAndTheLastOneItsReason) {
  ResponseChunk chunk{.text = "Hi", .token_ids = {{3}}};
  EXPECT_EQ(generate_json(chunk_head(), chunk),
            R"({"id":"x-1","text":"Hi","finish_reason":null,"token_ids":[3]})");
  chunk.usage = ResponseUsage{.prompt_tokens = 5, .completion_tokens = 1, .cached_tokens = {}};
  const ResponseChoice ending{.finish_reason = "stop", .stop_reason = 3, .seed = 9};
  chunk.ending = &ending;
  chunk.text = {};
  EXPECT_EQ(generate_json(chunk_head(), chunk),
            R"({"id":"x-1","text":null,"finish_reason":"stop","stop_reason":3,"token_ids":[3],)"
            R"("seed":9,"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}})");
}

TEST(ResponseChunk, AGeneratedAnswerIsOneObject) {
  ResponseChoice choice{.text = "Hi", .finish_reason = "length", .seed = 9};
  choice.token_ids = {{3, 4}};
  EXPECT_EQ(
      writer_of(kGenerateDialect, R"({"prompt": "x"})")
          ->whole({.head = chunk_head(),
                   .choices = {choice},
                   .usage = {.prompt_tokens = 5, .completion_tokens = 2, .cached_tokens = 4}}),
      R"({"id":"x-1","model":"m","text":"Hi","finish_reason":"length","stop_reason":null,)"
      R"("token_ids":[3,4],"seed":9,"usage":{"prompt_tokens":5,"completion_tokens":2,)"
      R"("total_tokens":7,"prompt_tokens_details":{"cached_tokens":4}}})");
}

TEST(ResponseChunk, OffsetsGoOnFromThePieceBefore) {
  ResponseChunk chunk{.text = "é!"};
  chunk.logprobs.emplace();
  for (const std::string bytes : {"é", "!"}) {
    chunk.logprobs->push_back({.token = {.id = 1, .bytes = bytes},
                               .logprob = -1.0f,
                               .top = {},
                               .text_bytes = bytes.size()});
  }
  chunk.named_text = "é!";
  chunk.text_offset = 10;
  EXPECT_NE(completion_json(chunk_head(), chunk).find(R"("text_offset":[10,11])"),
            std::string::npos);
}

TEST(ResponseChunk, PiecesSayWhichTextWasDrafted) {
  const ResponseChunk chunk{.text = "ab c",
                            .pieces = {{.text = "ab", .is_accepted = true}, {.text = " c"}}};
  EXPECT_EQ(chat_json(chunk_head(), chunk),
            R"({"id":"x-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[)"
            R"({"index":0,"delta":{"content":"ab c"},"logprobs":null,"pieces":[)"
            R"({"text":"ab","accepted":true},{"text":" c","accepted":false}],)"
            R"("finish_reason":null}]})");
}

}  // namespace
}  // namespace paceline
