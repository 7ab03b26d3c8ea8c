// UsageError: the command line, the environment or the config file is wrong.
#pragma once

#include <stdexcept>

namespace paceline {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace paceline
