// EngineSnapshot is what the engine holds between two steps, as values: the sequences and who holds
// which block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace paceline {

class StepEngine;

struct SequenceSnapshot {
  int64_t sequence = 0;  // its arrival id
  int64_t tag = 0;
  int32_t choice = 0;
  bool is_running = false;
  bool is_deferred = false;
  std::string adapter;  // its name; empty: none
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  int64_t max_tokens = 0;
  int64_t blocks = 0;
  int64_t preemptions = 0;
  double queue_seconds = 0;
  double age_seconds = 0;
};

struct PoolSnapshot {
  static constexpr int64_t kFree = 0, kCached = -1, kShared = -2;

  int64_t num_blocks = 0;
  int64_t block_size = 0;
  int64_t window = 0;         // 0: none
  bool holds_states = false;  // a block is a sequence's state, whatever block_size is
  // Runs of consecutive blocks: their holder (a sequence, or one of the above) and their number.
  std::vector<std::pair<int64_t, int64_t>> runs;
};

// How many blocks a pool has, and how many of them sequences or held prefixes use.
struct PoolUse {
  int64_t num_blocks = 0;
  int64_t num_used = 0;
};

// A backend that isn't Paceline's own, as it describes itself.
struct BackendReport {
  std::string name;
  std::string version;
  int64_t num_restarts = 0;
  std::optional<int64_t> memory_bytes = {};  // nothing: it doesn't say
};

struct EngineSnapshot {
  EngineCounters counters;
  std::vector<SequenceSnapshot> sequences;  // the running ones first
  std::vector<PoolSnapshot> pools;
  // Of layers with states: the states, and the rows of their open chunks.
  PoolUse states, open_rows;
  std::optional<BackendReport> backend = {};  // nothing: the tokens are computed here
};

// The engine's thread, between steps.
EngineSnapshot snapshot_of(const StepEngine& engine);

}  // namespace paceline
