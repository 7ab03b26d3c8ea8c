// CheckReport writes what a check or a measurement found as JSON lines, and counts failures.
#pragma once

#include <functional>
#include <string_view>

#include "base/json_writer.h"

namespace paceline {

class CheckReport {
 public:
  using Details = std::function<void(JsonWriter&)>;

  // {"part": ..., "name": ..., "passed": ..., and the details}
  void check(std::string_view part, std::string_view name, bool passed,
             const Details& details = {});
  // {"part": ..., "name": ..., and the details}
  void measured(std::string_view part, std::string_view name, const Details& details);

  int num_checks() const { return num_checks_; }
  int num_failures() const { return num_failures_; }

 private:
  int num_checks_ = 0;
  int num_failures_ = 0;
};

}  // namespace paceline
