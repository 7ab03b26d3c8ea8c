// Texts of the emulation's reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/emulation/call_site.h"

namespace paceline::cuda::emulation {

// "kernels/cuda/code/rms_norm.h:31": the path from src/ or tests/ on.
std::string text_of(CallSite site);

struct ThreadReport {
  uint32_t thread = 0;
  std::string what;
};
// "threads 0-31, 40 ended; threads 32-39 ...": threads of the same words together.
std::string text_of(const std::vector<ThreadReport>& reports);

}  // namespace paceline::cuda::emulation
