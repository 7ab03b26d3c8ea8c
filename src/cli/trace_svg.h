// Draws a trace as one SVG document: totals, sequences over time, the batch and the cache's pools.
#pragma once

#include <string>

#include "cli/trace_file.h"
#include "cli/trace_timeline.h"
#include "cli/trace_totals.h"

namespace paceline {

// Well-formed, without scripts, light or dark like the reader's browser. `timeline` and `totals`
// are those of `trace`.
std::string draw_trace(const Trace& trace, const Timeline& timeline, const TraceTotals& totals);

}  // namespace paceline
