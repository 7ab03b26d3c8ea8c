// A trace by sequence, when each waited, was prefilled, decoded and ended; its totals; its events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/figures.h"
#include "cli/trace_file.h"

namespace paceline {

// All times are in microseconds since the first step began.
struct Interval {
  int64_t begin_us = 0;
  int64_t end_us = 0;
};

enum class SpanKind : uint8_t {
  prefill,    // prompt tokens computed for the first time
  recompute,  // tokens computed again after a preemption
  decode,     // one token per step, and drafted ones
};

// A slice of one step, or the slices of adjacent decode steps.
struct LaneSpan {
  SpanKind kind = SpanKind::prefill;
  Interval time;
  int64_t tokens = 0;    // rows, drafted ones included
  int64_t drafted = 0;   // rows of drafts
  int64_t accepted = 0;  // of these, kept
  size_t last_step = 0;  // index into the steps
};

struct CacheHit {
  int64_t at_us = 0;
  int64_t tokens = 0;
};

// One sequence from its arrival to its end.
struct Lane {
  int64_t id = 0;
  int64_t prompt_tokens = 0;
  int64_t arrival_us = 0;
  std::optional<int64_t> first_token_us;
  std::optional<int64_t> end_us;  // nothing: the trace ended first
  std::string finish_reason;
  std::vector<LaneSpan> spans;
  std::vector<CacheHit> cache_hits;
  std::vector<int64_t> preemptions_us;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  int64_t drafted_tokens = 0;
  int64_t accepted_tokens = 0;
};

struct StepTime {
  int64_t step = 0;
  Interval time;
  int64_t prefill_rows = 0;   // recomputed ones included
  int64_t decode_rows = 0;    // drafted ones included
  int64_t accepted_rows = 0;  // of drafts
  int64_t rejected_rows = 0;
};

struct Timeline {
  std::vector<Lane> lanes;  // in order of arrival
  std::vector<StepTime> steps;
  int64_t duration_us = 0;
};

Timeline make_timeline(const Trace& trace);

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
