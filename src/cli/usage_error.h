// UsageError: the command line, the environment or the config file is wrong.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <utility>

namespace paceline {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // With a message that fmt makes.
  template <class Arg, class... Args>
  UsageError(fmt::format_string<Arg, Args...> message, Arg&& arg, Args&&... args)
      : runtime_error(fmt::format(message, std::forward<Arg>(arg), std::forward<Args>(args)...)) {}
};

}  // namespace paceline
