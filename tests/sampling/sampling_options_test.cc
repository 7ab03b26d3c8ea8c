#include "sampling/sampling_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

constexpr int64_t kVocabSize = 100;

using Change = std::function<void(SamplingOptions&)>;

void check_changed(const Change& change) {
  SamplingOptions options;
  change(options);
  check_sampling_options(options, kVocabSize);
}

std::string complaint(const Change& change) {
  return error_message(ErrorCode::invalid, [&] { check_changed(change); });
}

TEST(SamplingOptions, DefaultsAndBoundsAreAccepted) {
  EXPECT_NO_THROW(check_changed([](auto&) {}));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.temperature = 0.0f; }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.temperature = 2.0f; }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.top_k = std::numeric_limits<int32_t>::max(); }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.top_p = 1e-30f; }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.min_p = 1.0f; }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.frequency_penalty = -2.0f; }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.presence_penalty = 2.0f; }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.num_top_logprobs = 20; }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.logit_bias = {{5, -INFINITY}}; })) << "never";
  EXPECT_NO_THROW(check_changed([](auto& o) { o.logprob_token_ids.assign(256, 99); }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.logit_bias = {{0, -100.0f}, {99, 100.0f}}; }));
  SamplingOptions many;
  for (int32_t id = 0; id < 1024; ++id) many.logit_bias.emplace_back(id, 1.0f);
  EXPECT_NO_THROW(check_sampling_options(many, 1024));
}

TEST(SamplingOptions, RangesEndExactlyWhereTheirMessagesSay) {
  struct Range {
    float SamplingOptions::*field;
    float lowest, highest;
  };
  const float up = INFINITY;
  const Range ranges[] = {{&SamplingOptions::temperature, 0, 2},
                          {&SamplingOptions::top_p, 0, 1},
                          {&SamplingOptions::min_p, 0, 1},
                          {&SamplingOptions::repetition_penalty, 0.01f, 100},
                          {&SamplingOptions::frequency_penalty, -2, 2},
                          {&SamplingOptions::presence_penalty, -2, 2}};
  for (const Range& range : ranges) {
    const auto with = [&](float value) {
      return [&range, value](SamplingOptions& o) { o.*range.field = value; };
    };
    EXPECT_NO_THROW(check_changed(with(range.lowest)));
    EXPECT_NO_THROW(check_changed(with(range.highest)));
    complaint(with(std::nextafter(range.lowest, -up)));
    complaint(with(std::nextafter(range.highest, up)));
    complaint(with(NAN));
  }
  EXPECT_NO_THROW(check_changed([](auto& o) { o.num_top_logprobs = 0; }));
  EXPECT_NO_THROW(check_changed([](auto& o) { o.logit_bias.resize(1); }));
}

TEST(SamplingOptions, MessagesNameFieldValueAndRange) {
  EXPECT_EQ(complaint([](auto& o) {
              o.logprob_token_ids = {0, 100};
            }),
            "logprob_token_ids: found 100, expected a token id in [0, 100)");
  EXPECT_EQ(complaint([](auto& o) { o.logprob_token_ids.assign(257, 0); }),
            "logprob_token_ids: found 257 ids, expected at most 256");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = 2.5f; }),
            "temperature: found 2.5, expected a number from 0 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = NAN; }),
            "temperature: found nan, expected a number from 0 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = INFINITY; }),
            "temperature: found inf, expected a number from 0 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.temperature = -0.5f; }),
            "temperature: found -0.5, expected a number from 0 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.top_p = -0.5f; }),
            "top_p: found -0.5, expected a number from 0 to 1");
  EXPECT_EQ(complaint([](auto& o) { o.typical_p = 1.5f; }),
            "typical_p: found 1.5, expected a number above 0 and at most 1");
  EXPECT_EQ(complaint([](auto& o) { o.min_p = -1.0f; }),
            "min_p: found -1, expected a number from 0 to 1");
  EXPECT_EQ(complaint([](auto& o) { o.top_k = -2; }),
            "top_k: found -2, expected an integer from -1 to 2147483647");
  EXPECT_EQ(complaint([](auto& o) { o.repetition_penalty = 0.0f; }),
            "repetition_penalty: found 0, expected a number from 0.01 to 100");
  EXPECT_EQ(complaint([](auto& o) { o.repetition_penalty = INFINITY; }),
            "repetition_penalty: found inf, expected a number from 0.01 to 100");
  EXPECT_EQ(complaint([](auto& o) { o.frequency_penalty = 2.5f; }),
            "frequency_penalty: found 2.5, expected a number from -2 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.presence_penalty = NAN; }),
            "presence_penalty: found nan, expected a number from -2 to 2");
  EXPECT_EQ(complaint([](auto& o) { o.num_top_logprobs = 21; }),
            "num_top_logprobs: found 21, expected an integer from 0 to 20");
  EXPECT_EQ(complaint([](auto& o) { o.num_top_logprobs = -1; }),
            "num_top_logprobs: found -1, expected an integer from 0 to 20");
}

TEST(SamplingOptions, LogitBiasIsCheckedEntryByEntry) {
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias = {{1, 0.0f}, {100, 1.0f}};
            }),
            "logit_bias: the token id 100 is outside the vocabulary (0..99)");
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias = {{-1, 1.0f}};
            }),
            "logit_bias: the token id -1 is outside the vocabulary (0..99)");
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias = {{7, INFINITY}};
            }),
            "logit_bias[7]: found inf, expected a finite number or -inf");
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias = {{7, 1.0f}, {3, 1.0f}, {7, 2.0f}};
            }),
            "logit_bias: found token id 7 twice, expected each id once");
  EXPECT_EQ(complaint([](auto& o) {
              o.logit_bias.assign(1025, {1, 0.0f});
            }),
            "logit_bias: found 1025 entries, expected at most 1024");
}

}  // namespace
}  // namespace paceline
