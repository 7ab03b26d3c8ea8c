// What is told of a trace: its totals, and its events over time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/figures.h"
#include "cli/trace_file.h"
#include "cli/trace_timeline.h"

namespace paceline {

struct TraceTotals {
  std::string model;
  int64_t requests = 0;
  std::vector<std::pair<std::string, int64_t>> finished;  // by reason, in order of appearance
  int64_t steps = 0;
  double seconds = 0;          // from the first step's begin to the last one's end
  double forward_seconds = 0;  // spent in the model
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;    // taken from the prefix cache
  int64_t computed_tokens = 0;  // rows of all steps
  int64_t recomputed_tokens = 0;
  int64_t output_tokens = 0;
  int64_t drafted_tokens = 0;
  int64_t accepted_tokens = 0;
  int64_t preemptions = 0;
  int64_t max_running = 0;                      // sequences in one step
  std::vector<int64_t> max_held;                // most blocks of each group held at once
  std::optional<double> median_first_token_ms;  // from arrival
  double mean_overhead_us = 0;                  // of a step, outside the forward
  int64_t max_plan_us = 0;

  // Tokens drawn per second; 0 without time.
  double tokens_per_second() const;
  DraftCounts drafts() const {
    return {.drafted = drafted_tokens, .accepted = accepted_tokens, .output = output_tokens};
  }
};

TraceTotals add_up(const Trace& trace, const Timeline& timeline);

// One JSON object, without a line end.
std::string totals_json(const TraceTotals& totals);

// "12 requests · 1,234 tokens · ...".
std::string totals_text(const TraceTotals& totals);

// The trace as JSON that Perfetto and Chrome show: a track of the steps with counters of rows and
// blocks, and one of each sequence with its slices, preemptions and prefix hits. `otherData` has
// the totals.
std::string trace_events(const Trace& trace, const Timeline& timeline, const TraceTotals& totals);

}  // namespace paceline
