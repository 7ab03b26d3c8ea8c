// Tests on one instruction set after another.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "tests/test_scale.h"

namespace paceline {

// Sets PACELINE_ISA, which choose_isa() reads, while it lives.
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

// The sets to run: the one that PACELINE_ISA names, else all that this machine has; under a
// sanitizer the first and the last, or where the first is plain only the last.
inline std::vector<Isa> isas_to_run() {
  const char* const asked = std::getenv("PACELINE_ISA");
  if (asked != nullptr && *asked != '\0') return {choose_isa()};
  const auto isas = available_isas();
  if (!runs_fewer_cases() || isas.size() == 1) return {isas.begin(), isas.end()};
  if (!are_all_kernels_sanitized()) return {isas.back()};
  return {isas.front(), isas.back()};
}

}  // namespace paceline
