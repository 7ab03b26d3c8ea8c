#include "engine/engine_snapshot.h"

#include <algorithm>
#include <memory>
#include <span>

#include "base/time_source.h"
#include "engine/sequence.h"
#include "engine/step_engine.h"
#include "runner/loaded_adapter.h"

namespace paceline {
namespace {

SequenceSnapshot snapshot_of(const Sequence& sequence, bool is_running) {
  const auto now = Clock::now();
  const auto submitted = sequence.shared->submitted;
  const LoadedAdapter* const adapter = sequence.request().adapter.get();
  return {.sequence = sequence.arrival_id,
          .tag = sequence.shared->tag,
          .choice = sequence.choice,
          .is_running = is_running,
          .is_deferred = sequence.is_deferred,
          .adapter = adapter != nullptr ? adapter->name : std::string(),
          .prompt_tokens = sequence.prompt_length,
          .cached_tokens = sequence.stats.cached_tokens,
          .output_tokens = sequence.num_output(),
          .max_tokens = sequence.request().max_tokens,
          .blocks = is_running ? sequence.blocks.num_kept(0) : 0,
          .preemptions = sequence.stats.preemptions,
          .queue_seconds = seconds_of((sequence.has_started ? sequence.started : now) - submitted),
          .age_seconds = seconds_of(now - submitted)};
}

// The holder of each block, from the block tables of the running sequences.
void add_holders(const StepEngine& engine, int group, std::vector<int64_t>& holders) {
  for (const auto& sequence : engine.running()) {
    for (const auto block : sequence->blocks.table(group)) {
      if (block < 0) continue;
      int64_t& holder = holders[static_cast<size_t>(block)];
      holder = holder == PoolSnapshot::kFree ? sequence->arrival_id : PoolSnapshot::kShared;
    }
  }
}

PoolSnapshot pool_snapshot(const StepEngine& engine, int group) {
  const auto& pool = engine.cache().pool(group);
  std::vector<int64_t> holders(static_cast<size_t>(pool.num_blocks()), PoolSnapshot::kFree);
  add_holders(engine, group, holders);
  PoolSnapshot snapshot{.num_blocks = pool.num_blocks(),
                        .block_size = engine.cache().block_size(),
                        .window = engine.cache().group(group).window,
                        .holds_states = engine.cache().group(group).is_recurrent,
                        .runs = {}};
  for (size_t block = 0; block < holders.size(); ++block) {
    const auto id = static_cast<int32_t>(block);
    int64_t holder = holders[block];
    if (holder == PoolSnapshot::kFree && pool.reference_count(id) > 0) {
      holder = PoolSnapshot::kShared;  // by a held prefix
    } else if (holder == PoolSnapshot::kFree && pool.is_published(id)) {
      holder = PoolSnapshot::kCached;
    }
    if (snapshot.runs.empty() || snapshot.runs.back().first != holder) {
      snapshot.runs.emplace_back(holder, 0);
    }
    ++snapshot.runs.back().second;
  }
  return snapshot;
}

PoolUse use_of(const BlockPool& pool) {
  return {.num_blocks = pool.num_blocks(), .num_used = pool.num_blocks() - pool.num_free()};
}

}  // namespace

EngineSnapshot snapshot_of(const StepEngine& engine) {
  EngineSnapshot snapshot{.counters = engine.counters()};
  for (const auto& sequence : engine.running()) {
    snapshot.sequences.push_back(snapshot_of(*sequence, true));
  }
  for (const auto& sequence : engine.waiting()) {
    snapshot.sequences.push_back(snapshot_of(*sequence, false));
  }
  for (int group = 0; group < engine.cache().num_groups(); ++group) {
    const CacheGroup& kind = engine.cache().group(group);
    const PoolUse use = use_of(engine.cache().pool(group));
    if (kind.holds_open_rows) {
      snapshot.open_rows = use;
      continue;  // a block of each that runs
    }
    if (kind.is_recurrent) snapshot.states = use;
    snapshot.pools.push_back(pool_snapshot(engine, group));
  }
  return snapshot;
}

}  // namespace paceline
