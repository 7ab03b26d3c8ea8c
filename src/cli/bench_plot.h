// Draws bench's measurements: speeds under the machine's roofline, and the growth of time with
// size.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_report.h"

namespace paceline {

// One SVG document, light or dark like the reader's browser.
std::string draw_bench(const MachineReport& machine, const std::vector<BenchReport>& reports);

}  // namespace paceline
