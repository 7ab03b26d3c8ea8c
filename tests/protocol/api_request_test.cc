#include "protocol/api_request.h"

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

TEST(ApiRequest, HasAPartForEachPromptAndOneForAConversation) {
  EXPECT_EQ(num_parts(completion(R"({"prompt": "a"})")), 1u);
  EXPECT_EQ(num_parts(completion(R"({"prompt": ["a", "b"]})")), 2u);
  EXPECT_EQ(num_parts(classification(R"({"input": ["a", "b", "c"]})")), 3u);
  EXPECT_EQ(num_parts(chat(message_body(R"({"role": "user", "content": "y"})"))), 1u);
}

TEST(ApiRequest, EveryEndpointHasTheCommonFields) {
  EXPECT_EQ(common_fields_of(completion(completion_body(R"("model": "a")"))).model, "a");
  EXPECT_EQ(common_fields_of(chat(chat_body(R"("model": "b")"))).model, "b");
  EXPECT_EQ(common_fields_of(classification(classification_body(R"("model": "c")"))).model, "c");
}

}  // namespace
}  // namespace paceline
