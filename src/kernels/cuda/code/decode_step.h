// The kernel that ends a step of decoding slots: it moves them on.
#pragma once

#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/cuda/code/draw_row.h"
#include "kernels/cuda/code/state_rows.h"

namespace paceline::cuda {

// DecodedToken of kernels/decode_slots.h: up to kSlotBadState its status is a DrawOutcome.
struct SlotToken {
  int32_t status = 0;
  int32_t id = -1;
  float logprob = 0.0f;
  uint32_t num_scored = 0;
};
constexpr int32_t kSlotBadState = 4;
constexpr int32_t kSlotEmpty = 5;

// Part of a list of numbers.
struct NumberSpan {
  int32_t first = 0;
  int32_t count = 0;
};

// The slots' arrays of one cache group: of keys and values, or of states.
struct SlotGroup {
  int64_t* kv_slots = nullptr;   // -1: empty
  AttentionRow* rows = nullptr;  // with nothing to see: empty
  int64_t window = 0;
  StateRows* states = nullptr;  // without a row: empty
};

constexpr int kMostSlotGroups = 8;
constexpr uint32_t kAdvanceThreads = 256;

// Writes what was drawn to the ring, moves each slot to its next position and empties those that
// are done; one block.
struct AdvanceSlots {
  static constexpr std::string_view kName = "advance_slots";
  static constexpr uint32_t kThreads = kAdvanceThreads;
  struct Params {
    int64_t num_slots = 0;
    int64_t block_size = 1;
    int32_t* tokens = nullptr;
    int32_t* positions = nullptr;
    int32_t* steps_left = nullptr;
    const NumberSpan* stops = nullptr;  // of `numbers`
    const int32_t* numbers = nullptr;   // block tables and stop ids
    const uint8_t* finite = nullptr;    // of the rows' states
    DrawRow* rows = nullptr;
    const DrawnToken* drawn = nullptr;
    SlotGroup groups[kMostSlotGroups];
    int32_t num_groups = 0;
    int32_t ring_size = 1;         // steps
    SlotToken* ring = nullptr;     // [ring_size, ring_stride], the CPU's memory
    TokenScore* scores = nullptr;  // likewise, scores_stride for each token
    int64_t ring_stride = 0;
    int64_t scores_stride = 0;
    int64_t* step = nullptr;  // steps so far
  };
  using Shared = NoShared;

  PL_DEVICE static bool stops(const Params& p, int64_t slot, int32_t id) {
    const NumberSpan range = p.stops[slot];
    for (int32_t i = 0; i < range.count; ++i) {
      if (p.numbers[range.first + i] == id) return true;
    }
    return false;
  }

  PL_DEVICE static void empty(const Params& p, int64_t slot) {
    p.tokens[slot] = 0;
    p.positions[slot] = 0;
    p.steps_left[slot] = 0;
    p.rows[slot].is_active = 0;
    for (int32_t g = 0; g < p.num_groups; ++g) {
      const SlotGroup& group = p.groups[g];
      if (group.states != nullptr) {
        group.states[slot].num_rows = 0;
        continue;
      }
      group.kv_slots[slot] = -1;
      group.rows[slot].first = 0;
      group.rows[slot].end = 0;
    }
  }

  PL_DEVICE static void move(const Params& p, int64_t slot, int32_t id) {
    const int64_t position = int64_t{p.positions[slot]} + 1;
    p.tokens[slot] = id;
    p.positions[slot] = static_cast<int32_t>(position);
    --p.steps_left[slot];
    ++p.rows[slot].position;
    for (int32_t g = 0; g < p.num_groups; ++g) {
      const SlotGroup& group = p.groups[g];
      if (group.states != nullptr) {
        group.states[slot].first_position = position;
        continue;
      }
      AttentionRow& row = group.rows[slot];
      const int64_t block = p.numbers[row.table + position / p.block_size];
      group.kv_slots[slot] = block * p.block_size + position % p.block_size;
      row.end = position + 1;
      if (group.window > 0 && row.end > group.window) row.first = row.end - group.window;
    }
  }

  // What it decides by is loaded before it branches.
  PL_DEVICE static void advance(const Params& p, int64_t slot, int64_t entry) {
    const int32_t steps_left = p.steps_left[slot];
    const bool is_empty = steps_left == 0, is_bad = p.finite[slot] == 0;
    const DrawnToken drawn = p.drawn[slot];
    const bool is_drawn = !is_empty && !is_bad;
    const int32_t undrawn = is_empty ? kSlotEmpty : kSlotBadState;
    p.ring[entry] = {.status = is_drawn ? static_cast<int32_t>(drawn.outcome) : undrawn,
                     .id = is_drawn ? drawn.id : -1,
                     .logprob = is_drawn ? drawn.logprob : 0.0f,
                     .num_scored = is_drawn ? drawn.num_scored : 0};
    if (is_empty) return;
    if (is_bad) return empty(p, slot);
    for (uint32_t i = 0; i < drawn.num_scored; ++i) {
      p.scores[entry * p.scores_stride + i] = p.rows[slot].scored[i];
    }
    const bool is_done =
        drawn.outcome != DrawOutcome::ok || steps_left == 1 || stops(p, slot, drawn.id);
    is_done ? empty(p, slot) : move(p, slot, drawn.id);
  }

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t step = *p.step;
    sync_threads();
    if (thread_index() == 0) *p.step = step + 1;
    const int64_t first = step % p.ring_size * p.ring_stride;
    for (int64_t slot = thread_index(); slot < p.num_slots; slot += kThreads) {
      advance(p, slot, first + slot);
    }
  }
};

}  // namespace paceline::cuda
