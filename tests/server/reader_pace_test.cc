#include "server/reader_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paceline {
namespace {

constexpr int64_t kLooks = ReaderPace::kLooks;

// A server that writes and a client that reads, at rates in bytes between two looks.
class ReaderPaceTest : public ::testing::Test {
 protected:
  bool lags_after(int64_t num_looks, int64_t writes, int64_t reads) {
    bool lags = false;
    for (int64_t i = 0; i < num_looks; ++i) {
      progress_.written += writes;
      progress_.confirmed = std::min(progress_.written, progress_.confirmed + reads);
      lags = pace_.lags(progress_);
    }
    return lags;
  }

  ReaderPace pace_;
  HttpProgress progress_;
};

TEST_F(ReaderPaceTest, AClientThatReadsAllKeepsUp) {
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(lags_after(1, 100'000, 100'000));
}

TEST_F(ReaderPaceTest, BytesOnTheirWayAreNoLag) {
  lags_after(1, 60'000, 0);  // a long way, which always holds some
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(lags_after(1, 10'000, 10'000));
}

TEST_F(ReaderPaceTest, ASlowClientLags) {
  EXPECT_FALSE(lags_after(kLooks, 1000, 250));
  EXPECT_TRUE(lags_after(1, 1000, 250));
}

TEST_F(ReaderPaceTest, FewBytesAreNoLag) {
  EXPECT_FALSE(lags_after(kLooks + 1, 400, 0));
  EXPECT_TRUE(lags_after(2, 400, 0));
}

// Nothing is written any more: the client reads 500 bytes a look, thus 4,000 in all looks.
TEST_F(ReaderPaceTest, ItCatchesUpBeforeAllIsRead) {
  EXPECT_TRUE(lags_after(20, 2000, 500));  // 30,000 unread
  EXPECT_TRUE(lags_after(51, 0, 500));     // 4,500 unread
  EXPECT_FALSE(lags_after(1, 0, 500));
}

TEST_F(ReaderPaceTest, WhatWentBeforeOnTheConnectionDoesNotCount) {
  progress_ = {.written = 1 << 30, .confirmed = 1 << 30};
  EXPECT_TRUE(lags_after(20, 2000, 500));
}

}  // namespace
}  // namespace paceline
