#include "text/text_stream.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/utf8.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

TEST(TextStream, PiecesAreWellFormedAndAddUpToTheText) {
  const std::string text =
      "a\u00e9\u20ac\U0001F600 \xff\xe2\x82z\xf0\x9f";  // the end is incomplete
  uint64_t counter = 0;
  const int num_rounds = scaled(500, 50'000);
  for (int round = 0; round < num_rounds; ++round) {
    TextStream stream;
    std::string shown;
    size_t pushed = 0;
    while (pushed < text.size()) {
      const size_t count =
          std::min(text.size() - pushed, static_cast<size_t>(uniform_draw(3, counter++) * 4));
      stream.push(std::string_view(text).substr(pushed, count));
      pushed += count;
      const auto releasable =
          static_cast<int64_t>(uniform_draw(3, counter++) * static_cast<double>(pushed + 1));
      shown += stream.take(releasable);
      ASSERT_TRUE(is_valid_utf8(shown));
    }
    shown += stream.finish(static_cast<int64_t>(text.size()));
    ASSERT_EQ(shown, replace_invalid_utf8(text));
  }
}

TEST(TextStream, WhatMayNotBeShownIsNot) {
  TextStream stream;
  stream.push("hello STOP");
  EXPECT_EQ(stream.take(6), "hello ");
  EXPECT_EQ(stream.finish(6), "");
}

}  // namespace
}  // namespace paceline
