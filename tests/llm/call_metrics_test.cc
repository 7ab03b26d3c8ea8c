#include "llm/call_metrics.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

Clock::time_point at(double seconds) {
  return Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
}

// What the engine records of a sequence whose steps are at these times.
GenerationStats stats(int64_t prompt, int64_t output, double queue, double prefill, double decode) {
  return {.prompt_tokens = prompt,
          .output_tokens = output,
          .queue_seconds = queue,
          .prefill_seconds = prefill,
          .decode_seconds = decode,
          .time_to_first_token_seconds = queue + prefill};
}

TEST(CallMetrics, ADecodeRateLeavesThePrefillOut) {
  CallMetrics call;
  call.add_prompt(100, 0);
  call.add(stats(100, 22, 0.5, 4.0, 1.0), at(10));
  const Metrics metrics = call.metrics();
  EXPECT_EQ(metrics.prompt_tokens, 100);
  EXPECT_EQ(metrics.completion_tokens, 22);
  EXPECT_DOUBLE_EQ(metrics.prefill_tokens_per_second, 25);
  EXPECT_DOUBLE_EQ(metrics.decode_tokens_per_second, 21);
  EXPECT_DOUBLE_EQ(metrics.time_to_first_token_seconds, 4.5);
}

TEST(CallMetrics, SequencesSideBySideShareTheirTime) {
  CallMetrics call;
  call.add(stats(10, 11, 0, 1, 2), at(0));  // prefill 0 to 1, decode 1 to 3
  call.add(stats(30, 21, 1, 1, 2), at(0));  // prefill 1 to 2, decode 2 to 4
  const Metrics metrics = call.metrics();
  EXPECT_DOUBLE_EQ(metrics.prefill_tokens_per_second, 40.0 / 2);
  EXPECT_DOUBLE_EQ(metrics.decode_tokens_per_second, 30.0 / 3);
  EXPECT_DOUBLE_EQ(metrics.time_to_first_token_seconds, 1);
}

TEST(CallMetrics, TimeInWhichNothingDecodesDoesNotCount) {
  CallMetrics call;
  call.add(stats(1, 11, 0, 1, 2), at(0));
  call.add(stats(1, 11, 0, 1, 2), at(100));
  EXPECT_DOUBLE_EQ(call.metrics().decode_tokens_per_second, 20.0 / 4);
}

TEST(CallMetrics, ThePrefixThatWasCachedIsNotPrefilled) {
  CallMetrics call;
  GenerationStats half = stats(100, 1, 0, 2, 0);
  half.cached_tokens = 60;
  call.add_prompt(100, 60);
  call.add(half, at(0));
  EXPECT_DOUBLE_EQ(call.metrics().prefill_tokens_per_second, 20);
  EXPECT_EQ(call.metrics().decode_tokens_per_second, 0) << "one token is the prefill's";
  EXPECT_EQ(call.metrics().cached_tokens, 60);
}

TEST(CallMetrics, AScoreHasNoFirstToken) {
  CallMetrics call;
  call.add(stats(100, 0, 1, 2, 0), at(0));
  EXPECT_DOUBLE_EQ(call.metrics().prefill_tokens_per_second, 50);
  EXPECT_EQ(call.metrics().time_to_first_token_seconds, 0);
  EXPECT_EQ(call.metrics().decode_tokens_per_second, 0);
}

TEST(CoveredTime, SpansThatMeetCountOnce) {
  CoveredTime time;
  time.add(at(4), 1);
  time.add(at(0), 1);
  EXPECT_DOUBLE_EQ(time.seconds(), 2);
  time.add(at(1), 1);  // touches one
  EXPECT_DOUBLE_EQ(time.seconds(), 3);
  time.add(at(0.5), 10);  // covers all
  EXPECT_DOUBLE_EQ(time.seconds(), 10.5);
  time.add(at(3), 1);  // inside
  EXPECT_DOUBLE_EQ(time.seconds(), 10.5);
}

}  // namespace
}  // namespace paceline
