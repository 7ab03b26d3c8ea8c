#include "cli/batch_job.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

Call request(const Dialect& dialect, std::string_view body) {
  return parse_batch_call(dialect, parse_json(body, "body"));
}

TEST(BatchJob, EveryPromptIsAPart) {
  EXPECT_EQ(num_parts(request(kCompletionDialect, R"({"prompt": "a"})")), 1u);
  EXPECT_EQ(num_parts(request(kCompletionDialect, R"({"prompt": ["a", "b"], "n": 3})")), 2u);
  EXPECT_EQ(num_parts(request(kClassificationDialect, R"({"input": [[1], [2], [3]]})")), 3u);
  EXPECT_EQ(num_parts(request(kChatDialect, R"({"messages": [{"role": "user", "content": "x"}]})")),
            1u);
}

TEST(BatchJob, AFileHasNoListener) {
  expect_error(ErrorCode::invalid, {"stream: found true"},
               [] { request(kCompletionDialect, R"({"prompt": "a", "stream": true})"); });
  EXPECT_NO_THROW(request(kCompletionDialect, R"({"prompt": "a", "stream": false})"));
}

TEST(BatchJob, IsOverWhenNothingIsToCome) {
  BatchJob job;
  job.parts.resize(2);
  EXPECT_FALSE(job.is_finished());
  job.next_part = 2;
  job.num_in_flight = 1;
  EXPECT_FALSE(job.is_finished());
  job.num_in_flight = 0;
  EXPECT_TRUE(job.is_finished());
  job.next_part = 1;
  EXPECT_FALSE(job.is_finished());
  job.error.emplace();
  EXPECT_TRUE(job.is_finished());
}

}  // namespace
}  // namespace paceline
