// Trace is what an engine wrote with --trace: every request, and every step of the batch.
#pragma once

#include <string>
#include <vector>

#include "engine/trace_lines.h"

namespace paceline {

struct Trace {
  TraceStart start;
  std::vector<TraceRequest> requests;  // in order of arrival, ids unique
  std::vector<StepRecord> steps;       // numbers ascending, times never falling
  std::vector<TraceCancel> cancels;
};

// Reads a whole trace; "-" is standard input. Every id that a step or a cancellation names is that
// of a request above it, and every step has a number for each group. Throws Error not_found for the
// file, invalid or corrupt "FILE, line N: FIELD: ..." for what isn't so.
Trace read_trace(const std::string& path);

}  // namespace paceline
