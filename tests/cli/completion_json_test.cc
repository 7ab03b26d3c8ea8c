#include "cli/completion_json.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(CompletionJson, HasEveryFieldInOrder) {
  Completion completion;
  completion.text = "a\"b";
  completion.token_ids = {1, 2};
  completion.finish_reason = "stop";
  completion.stop_reason = std::string("END");
  completion.logprobs = {{.id = 1, .token = "a", .logprob = -0.5f, .top = {{2, "b", -1.0f}}}};
  completion.usage = {.prompt_tokens = 3, .completion_tokens = 2};
  completion.seed = UINT64_MAX;
  EXPECT_EQ(
      completion_json(completion, true),
      R"({"text":"a\"b","token_ids":[1,2],"finish_reason":"stop","stop_reason":"END",)"
      R"("logprobs":[{"id":1,"token":"a","logprob":-0.5,"top":[{"id":2,"token":"b","logprob":-1}]}],)"
      R"("usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5},)"
      R"("seed":18446744073709551615})");
}

TEST(CompletionJson, DraftsAreCountedWhereThereWereSome) {
  Completion completion;
  completion.usage = {
      .prompt_tokens = 3, .completion_tokens = 9, .drafted_tokens = 8, .accepted_tokens = 6};
  EXPECT_NE(completion_json(completion, false)
                .find(R"("total_tokens":12,"drafted_tokens":8,"accepted_tokens":6},)"),
            std::string::npos);
}

TEST(CompletionJson, AbsentPartsAreNull) {
  Completion completion;
  completion.finish_reason = "length";
  EXPECT_EQ(
      completion_json(completion, false),
      R"({"text":null,"token_ids":[],"finish_reason":"length","stop_reason":null,"logprobs":null,)"
      R"("usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0},"seed":0})");
  completion.stop_reason = 7;
  EXPECT_NE(completion_json(completion, false).find(R"("stop_reason":7)"), std::string::npos);
}

}  // namespace
}  // namespace paceline
