// Tests on one instruction set after another.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace paceline {

// PACELINE_ISA, which choose_isa() looks at, as long as it lives.
class ChosenIsa {
 public:
  explicit ChosenIsa(Isa isa) : ChosenIsa(isa_name(isa)) {}
  explicit ChosenIsa(std::string_view name) {
    if (const char* before = std::getenv("PACELINE_ISA")) before_ = before;
    ::setenv("PACELINE_ISA", std::string(name).c_str(), 1);
  }
  ~ChosenIsa() {
    if (before_) {
      ::setenv("PACELINE_ISA", before_->c_str(), 1);
    } else {
      ::unsetenv("PACELINE_ISA");
    }
  }

 private:
  std::optional<std::string> before_;
};

// The sets to run: all that this machine has, or the one that was asked for.
inline std::vector<Isa> isas_to_run() {
  const char* const asked = std::getenv("PACELINE_ISA");
  if (asked != nullptr && *asked != '\0') return {choose_isa()};
  return {available_isas().begin(), available_isas().end()};
}

}  // namespace paceline
