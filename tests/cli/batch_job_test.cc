#include "cli/batch_job.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace paceline {
namespace {

ApiRequest request(BatchUrl url, std::string_view body) {
  return parse_api_request(url, parse_json(body, "body"));
}

TEST(BatchJob, EveryPromptIsAPart) {
  EXPECT_EQ(num_parts(request(BatchUrl::completions, R"({"prompt": "a"})")), 1u);
  EXPECT_EQ(num_parts(request(BatchUrl::completions, R"({"prompt": ["a", "b"], "n": 3})")), 2u);
  EXPECT_EQ(num_parts(request(BatchUrl::classify, R"({"input": [[1], [2], [3]]})")), 3u);
  EXPECT_EQ(num_parts(request(BatchUrl::chat_completions,
                              R"({"messages": [{"role": "user", "content": "x"}]})")),
            1u);
}

TEST(BatchJob, AFileHasNoListener) {
  expect_error(ErrorCode::invalid, {"stream: found true"},
               [] { request(BatchUrl::completions, R"({"prompt": "a", "stream": true})"); });
  EXPECT_NO_THROW(request(BatchUrl::completions, R"({"prompt": "a", "stream": false})"));
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
