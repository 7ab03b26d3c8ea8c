// Whether a test runs under a sanitizer, which makes everything 5 to 20 times as slow.
#pragma once

#include <cstdlib>
#include <string_view>
#include <vector>

namespace paceline {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// Whether tests run only a part of their cases: under a sanitizer, unless PACELINE_TEST_SCALE is
// full.
inline bool runs_fewer_cases() {
  const char* const scale = std::getenv("PACELINE_TEST_SCALE");
  return kIsSanitized && (scale == nullptr || std::string_view(scale) != "full");
}

// All of `cases`, or every `step`th from `first` on if tests run only a part.
template <class T>
std::vector<T> cases_to_run(const std::vector<T>& cases, size_t first, size_t step) {
  if (!runs_fewer_cases()) return cases;
  std::vector<T> some;
  for (size_t i = first % step; i < cases.size(); i += step) some.push_back(cases[i]);
  return some;
}

}  // namespace paceline
