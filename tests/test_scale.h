// The length of random tests: short by default, long with PACELINE_TEST_SCALE=full (make nightly).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace paceline {

// The number of rounds to run. Read it once, before the loop.
inline int scaled(int usual, int full) {
  const char* const variable = std::getenv("PACELINE_TEST_SCALE");
  const std::string_view scale = variable == nullptr ? "" : variable;
  if (scale == "full") return full;
  EXPECT_EQ(scale, "") << "PACELINE_TEST_SCALE is full, or not set";
  return usual;
}

}  // namespace paceline
