// Writes what speculate measured: a table of speed-ups, and JSON.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "cli/bench_measure.h"

namespace paceline {

// "k 4", "adaptive".
std::string draft_name(const SpeculationLimits& limits);

// The speed-ups of all speculate rows by length of drafts, and what became of the drafts; empty
// without such rows.
std::string speculation_text(const BenchReport& report);

// The members of a speculate row.
void write_speculation(const BenchRow& row, JsonWriter& writer);

}  // namespace paceline
