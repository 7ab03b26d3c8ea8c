// What bench measured, for people and as JSON (docs/performance.md says what each figure means).
#pragma once

#include <string>
#include <vector>

#include "cli/bench_measure.h"

namespace paceline {

// The machine itself, measured apart from any model.
struct MachineReport {
  std::string processor;
  Isa isa = Isa::baseline;
  int threads = 0;
  std::optional<Roofline> roofline;  // when it was asked for
  double vdpbf16ps_flops_per_s = 0;  // where other instructions serve bfloat16; 0: not there
};

std::string bench_text(const MachineReport& machine, const std::vector<BenchReport>& reports);
std::string bench_json(const MachineReport& machine, const std::vector<BenchReport>& reports);

// What the processor can't do better, for the row's limit: "vdpbf16ps", "read bandwidth".
std::string_view limit_name(const BenchReport& report, const BenchRow& row);

}  // namespace paceline
