// Writes bench's measurements for people and as JSON (docs/performance.md explains the figures).
#pragma once

#include <string>
#include <vector>

#include "cli/bench_measure.h"

namespace paceline {

// The machine, measured without a model.
struct MachineReport {
  std::string processor;
  Isa isa = Isa::baseline;
  int threads = 0;
  std::optional<Roofline> roofline;  // with --roofline
  double vdpbf16ps_flops_per_s = 0;  // where bfloat16 uses another instruction; 0: unavailable
};

std::string bench_text(const MachineReport& machine, const std::vector<BenchReport>& reports);
std::string bench_json(const MachineReport& machine, const std::vector<BenchReport>& reports);

}  // namespace paceline
