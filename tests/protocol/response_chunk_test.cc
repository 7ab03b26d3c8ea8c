#include "protocol/response_chunk.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

ResponseHead head() { return {.id = "x-1", .created = 7, .model = "m", .system_fingerprint = {}}; }

TEST(ResponseChunk, AChatBeginsWithItsRole) {
  const ResponseChunk chunk{.index = 1, .has_role = true, .text = ""};
  EXPECT_EQ(chat_chunk_json(head(), chunk, {}),
            R"({"id":"x-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[)"
            R"({"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,)"
            R"("finish_reason":null}]})");
}

TEST(ResponseChunk, UsageIsNullWhereALastChunkWillHaveIt) {
  const ResponseChunk chunk{.text = "Hi"};
  EXPECT_EQ(chat_chunk_json(head(), chunk, {.has_usage = true}),
            R"({"id":"x-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[)"
            R"({"index":0,"delta":{"content":"Hi"},"logprobs":null,"finish_reason":null}],)"
            R"("usage":null})");
  EXPECT_EQ(usage_chunk_json(head(), kChatChunkObject,
                             {.prompt_tokens = 5, .completion_tokens = 1, .cached_tokens = {}}),
            R"({"id":"x-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[],)"
            R"("usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}})");
}

TEST(ResponseChunk, TheLastOneHasTheReason) {
  ResponseChoice ending{.finish_reason = "stop", .stop_reason = 3, .seed = 9};
  ending.token_ids = {{1, 2, 3}};
  const ResponseChunk chunk{.text = "", .token_ids = {{3}}, .ending = &ending};
  EXPECT_EQ(completion_chunk_json(head(), chunk, {}),
            R"({"id":"x-1","object":"text_completion","created":7,"model":"m","choices":[)"
            R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":3,)"
            R"("token_ids":[3],"seed":9}]})");
  EXPECT_NE(chat_chunk_json(head(), chunk, {}).find(R"("delta":{})"), std::string::npos);
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
  EXPECT_NE(completion_chunk_json(head(), chunk, {}).find(R"("text_offset":[10,11])"),
            std::string::npos);
}

TEST(ResponseChunk, PiecesSayWhichTextWasDrafted) {
  const ResponseChunk chunk{.text = "ab c",
                            .pieces = {{.text = "ab", .is_accepted = true}, {.text = " c"}}};
  EXPECT_EQ(chat_chunk_json(head(), chunk, {}),
            R"({"id":"x-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[)"
            R"({"index":0,"delta":{"content":"ab c"},"logprobs":null,"pieces":[)"
            R"({"text":"ab","accepted":true},{"text":" c","accepted":false}],)"
            R"("finish_reason":null}]})");
}

}  // namespace
}  // namespace paceline
