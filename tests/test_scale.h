// How much of a long test runs: little under a sanitizer, more otherwise, all of it with
// PACELINE_TEST_SCALE=full (make nightly).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/build_kind.h"

namespace paceline {

inline bool is_full_scale() {
  const char* const variable = std::getenv("PACELINE_TEST_SCALE");
  const std::string_view scale = variable == nullptr ? "" : variable;
  if (scale == "full") return true;
  EXPECT_EQ(scale, "") << "PACELINE_TEST_SCALE is full, or not set";
  return false;
}

// The number of random rounds to run: `usual`, a quarter of it under a sanitizer, `full` at full
// scale. Read it once, before the loop.
inline int scaled(int usual, int full) {
  if (is_full_scale()) return full;
  return is_sanitized() ? (usual + 3) / 4 : usual;
}

// Whether tests run only a part of their cases: under a sanitizer, unless at full scale.
inline bool runs_fewer_cases() { return is_sanitized() && !is_full_scale(); }

// All of `cases` at full scale, else every `usual`th from `first` on, or every `step`th under a
// sanitizer.
template <class T>
std::vector<T> cases_to_run(const std::vector<T>& cases, size_t first, size_t step,
                            size_t usual = 1) {
  if (is_full_scale()) return cases;
  if (!is_sanitized()) step = usual;
  std::vector<T> some;
  for (size_t i = first % step; i < cases.size(); i += step) some.push_back(cases[i]);
  return some;
}

}  // namespace paceline
