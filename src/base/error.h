// PL_CHECK reports bugs of the program; Error (paceline/error.h) reports bad input.
#pragma once

#include <string_view>

#include "paceline/error.h"

namespace paceline {

// Prints `condition`, `file:line` and the message to standard error, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               std::string_view message);

}  // namespace paceline

// Checks an invariant of the program. User input must never make it fail.
#define PL_CHECK(condition, message)                                       \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::paceline::check_failed(#condition, __FILE__, __LINE__, (message)); \
  } while (false)
