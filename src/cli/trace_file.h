// Trace is what an engine wrote with --trace: every request, and every step of the batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sampling/sampling_options.h"

namespace paceline {

// A cache group's pool.
struct TraceGroup {
  int64_t window = 0;  // tokens that its layers see; 0: all
  int64_t blocks = 0;  // size of the pool
};

struct TraceStart {
  std::string model;
  int64_t block_size = 0;  // tokens
  std::vector<TraceGroup> groups;
  int64_t max_num_seqs = 0;
  int64_t max_batched_tokens = 0;
};

// One sequence: one choice of what a client asked for. All that its output depends on.
struct TraceRequest {
  int64_t id = 0;
  int64_t step = 0;  // the one that took it in
  std::vector<int32_t> prompt_ids;
  int64_t prompt_tokens = 0;
  int64_t max_tokens = 0;
  SamplingOptions sampling;                // but for the mask, which the next two make
  std::vector<int32_t> allowed_token_ids;  // none: all
  std::vector<std::vector<int32_t>> banned;
  std::vector<int32_t> stop_token_ids;
  std::vector<std::string> stop;
  std::vector<int32_t> eos_token_ids;
  bool ignore_eos = false;
  int64_t priority = 0;
  int64_t min_tokens = 0;
  bool skip_special_tokens = true;
};

// Positions first to first + count - 1 of a sequence, computed in one step.
struct TraceSlice {
  int64_t id = 0;
  int64_t first = 0;
  int64_t count = 0;
};

// A number that a step says about a sequence.
struct TraceCount {
  int64_t id = 0;
  int64_t count = 0;
};

struct TraceToken {
  int64_t id = 0;
  int32_t token = 0;
};

struct TraceFinish {
  int64_t id = 0;
  std::string reason;
};

struct TraceStep {
  int64_t step = 0;
  int64_t at_us = 0;  // when it began, on the engine's clock
  int64_t plan_us = 0;
  int64_t forward_us = 0;
  int64_t total_us = 0;
  int64_t rows = 0;
  int64_t waiting = 0;               // sequences that wait
  std::vector<int64_t> free;         // blocks of each group that no sequence holds
  std::vector<int64_t> cached;       // those of them that the prefix cache keeps
  std::vector<TraceCount> admitted;  // tokens taken from the prefix cache
  std::vector<int64_t> preempted;
  std::vector<TraceSlice> slices;
  std::vector<TraceCount> blocks;  // blocks held in the first group
  std::vector<TraceToken> tokens;
  std::vector<TraceFinish> finished;
};

struct TraceCancel {
  int64_t id = 0;
  int64_t step = 0;
};

struct Trace {
  TraceStart start;
  std::vector<TraceRequest> requests;  // in order of arrival, ids unique
  std::vector<TraceStep> steps;        // numbers ascending, times never falling
  std::vector<TraceCancel> cancels;
};

// Reads a whole trace; "-" is standard input. Every id that a step or a cancellation names is that
// of a request above it, and every step has a number for each group. Throws Error not_found for the
// file, invalid or corrupt "FILE, line N: FIELD: ..." for what isn't so.
Trace read_trace(const std::string& path);

}  // namespace paceline
