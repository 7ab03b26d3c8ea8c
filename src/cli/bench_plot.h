// Draws what bench measured: speeds under the machine's roofline, and how time grows with size.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_report.h"

namespace paceline {

// One SVG document, light or dark as the reader's browser is.
std::string draw_bench(const MachineReport& machine, const std::vector<BenchReport>& reports);

}  // namespace paceline
