// The body of /v1/embeddings and its answer.
#include <gtest/gtest.h>

#include "protocol/embedding_request.h"
#include "protocol/request_options.h"
#include "tests/protocol/requests.h"

namespace paceline {
namespace {

EmbeddingRequest embedding(const std::string& body) {
  return parse_embedding_request(parse_json(body, "body"));
}

TEST(EmbeddingRequest, ReadsEveryField) {
  const EmbeddingRequest plain = embedding(R"({"input": "x"})");
  EXPECT_EQ(plain.format, EmbeddingFormat::floats);
  EXPECT_FALSE(plain.dimensions || plain.named_prompt);
  EXPECT_TRUE(plain.add_special_tokens);
  const EmbeddingRequest all = embedding(
      R"({"input": ["x", "y"], "encoding_format": "base64", "dimensions": 8, "prompt_name": "query",
          "add_special_tokens": false, "priority": 3, "cache_salt": "s", "user": "me"})");
  EXPECT_EQ(all.format, EmbeddingFormat::base64);
  EXPECT_EQ(all.input.prompts.size(), 2u);
  const EmbedOptions options = embedding_options(all, 1, {});
  EXPECT_EQ(options.dimensions, 8);
  EXPECT_EQ(options.named_prompt, "query");
  EXPECT_FALSE(options.add_special_tokens);
  EXPECT_EQ(options.priority, 3);
  EXPECT_EQ(options.cache_salt, "s");
  EXPECT_EQ(options.prompt_name, "input[1]");
}

TEST(EmbeddingRequest, AnswersInOpenAisShape) {
  const ResponseHead head{.id = "embd-1", .created = 5, .model = "m", .system_fingerprint = {}};
  const ItemAnswer two{
      .head = head, .usage = {.prompt_tokens = 7}, .embeddings = {{1.0f, -2.0f}, {0.5f, 0.25f}}};
  EXPECT_EQ(embedding_response_json(embedding(R"({"input": "x"})"), two),
            R"({"id":"embd-1","object":"list","created":5,"model":"m","data":[)"
            R"({"object":"embedding","index":0,"embedding":[1,-2]},)"
            R"({"object":"embedding","index":1,"embedding":[0.5,0.25]}],)"
            R"("usage":{"prompt_tokens":7,"completion_tokens":0,"total_tokens":7}})");
  const std::string coded =
      embedding_response_json(embedding(R"({"input": "x", "encoding_format": "base64"})"), two);
  EXPECT_NE(coded.find(R"("embedding":"AACAPwAAAMA=")"), std::string::npos);
}

}  // namespace
}  // namespace paceline
