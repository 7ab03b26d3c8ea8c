// PL_CHECK reports bugs of the program; Error (paceline/error.h) reports bad input.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "paceline/error.h"

namespace paceline {

// Prints `condition`, `file:line` and the message to standard error, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               std::string_view message);

// An error whose message fmt makes.
template <class... Args>
Error error_of(ErrorCode code, fmt::format_string<Args...> message, Args&&... args) {
  return {code, fmt::format(message, std::forward<Args>(args)...)};
}

}  // namespace paceline

// Checks an invariant of the program. User input must never make it fail.
#define PL_CHECK(condition, message)                                       \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::paceline::check_failed(#condition, __FILE__, __LINE__, (message)); \
  } while (false)
