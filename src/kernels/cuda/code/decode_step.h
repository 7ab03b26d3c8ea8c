// The kernels that end a step of decoding slots: one draws their tokens, one moves them on.
#pragma once

#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/cuda/code/row_results.h"

namespace paceline::cuda {

// DecodedToken of kernels/decode_slots.h.
struct SlotToken {
  int32_t status = 0;
  int32_t id = -1;
  float logprob = 0.0f;
};
constexpr int32_t kSlotDrawn = 0;
constexpr int32_t kSlotNan = 1;
constexpr int32_t kSlotNothing = 2;
constexpr int32_t kSlotBadState = 3;
constexpr int32_t kSlotEmpty = 4;

struct LargestShared {
  WarpPartials partials;
  uint32_t of_warp[kRowThreads / kWarpLanes];
};

// The lowest index at which x is `value`; every thread gets it. All kRowThreads must call it.
PL_DEVICE uint32_t first_index_of(float value, const float* x, int64_t width,
                                  LargestShared& shared) {
  uint32_t first = 0xFFFFFFFFu;
  for (int64_t i = thread_index(); i < width; i += kRowThreads) {
    if (x[i] != value) continue;
    first = static_cast<uint32_t>(i);
    break;
  }
  for (uint32_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    const uint32_t other = shuffle_xor(first, distance);
    first = other < first ? other : first;
  }
  if (lane_index() == 0) shared.of_warp[warp_index()] = first;
  sync_threads();
  for (const uint32_t of_warp : shared.of_warp) first = of_warp < first ? of_warp : first;
  return first;
}

// The largest logit of each row, a block for each. Its log-probability has the bits of LogSumExp.
struct DrawLargest {
  static constexpr std::string_view kName = "draw_largest";
  static constexpr uint32_t kThreads = kRowThreads;
  struct Params {
    ConstRows logits;
    int64_t width = 0;
    const int32_t* steps_left = nullptr;  // of the rows' slots; 0: empty
    const uint8_t* wants_logprob = nullptr;
    SlotToken* out = nullptr;
  };
  using Shared = LargestShared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const uint32_t row = block_index().x;
    if (p.steps_left[row] == 0) return;
    const float* const x = p.logits.row(row);
    const float top = row_maximum(x, p.width, shared.partials);
    if (!is_finite(top)) {
      if (thread_index() == 0) {
        p.out[row] = {.status = top != top ? kSlotNan : kSlotNothing, .id = -1, .logprob = 0.0f};
      }
      return;
    }
    const uint32_t id = first_index_of(top, x, p.width, shared);
    float logprob = 0.0f;
    if (p.wants_logprob[row] != 0) {
      const float difference = top - log_sum_exp_below(top, x, p.width, shared.partials);
      logprob = difference < 0.0f ? difference : 0.0f;
    }
    if (thread_index() == 0) {
      p.out[row] = {.status = kSlotDrawn, .id = static_cast<int32_t>(id), .logprob = logprob};
    }
  }
};

// Part of a list of numbers.
struct NumberSpan {
  int32_t first = 0;
  int32_t count = 0;
};

// The slots' arrays of one cache group.
struct SlotGroup {
  int64_t* kv_slots = nullptr;   // -1: empty
  AttentionRow* rows = nullptr;  // with nothing to see: empty
  int64_t window = 0;
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
    const SlotToken* drawn = nullptr;
    SlotGroup groups[kMostSlotGroups];
    int32_t num_groups = 0;
    int32_t ring_size = 1;      // steps
    SlotToken* ring = nullptr;  // [ring_size, ring_stride], the CPU's memory
    int64_t ring_stride = 0;
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
    for (int32_t g = 0; g < p.num_groups; ++g) {
      p.groups[g].kv_slots[slot] = -1;
      p.groups[g].rows[slot].first = 0;
      p.groups[g].rows[slot].end = 0;
    }
  }

  PL_DEVICE static void move(const Params& p, int64_t slot, int32_t id) {
    const int64_t position = int64_t{p.positions[slot]} + 1;
    p.tokens[slot] = id;
    p.positions[slot] = static_cast<int32_t>(position);
    --p.steps_left[slot];
    for (int32_t g = 0; g < p.num_groups; ++g) {
      const SlotGroup& group = p.groups[g];
      AttentionRow& row = group.rows[slot];
      const int64_t block = p.numbers[row.table + position / p.block_size];
      group.kv_slots[slot] = block * p.block_size + position % p.block_size;
      row.end = position + 1;
      if (group.window > 0 && row.end > group.window) row.first = row.end - group.window;
    }
  }

  PL_DEVICE static void advance(const Params& p, int64_t slot, SlotToken& entry) {
    if (p.steps_left[slot] == 0) {
      entry = {.status = kSlotEmpty, .id = -1, .logprob = 0.0f};
      return;
    }
    entry = p.drawn[slot];
    if (p.finite[slot] == 0) entry = {.status = kSlotBadState, .id = -1, .logprob = 0.0f};
    const bool is_done =
        entry.status != kSlotDrawn || p.steps_left[slot] == 1 || stops(p, slot, entry.id);
    is_done ? empty(p, slot) : move(p, slot, entry.id);
  }

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t step = *p.step;
    sync_threads();
    if (thread_index() == 0) *p.step = step + 1;
    SlotToken* const entries = p.ring + step % p.ring_size * p.ring_stride;
    for (int64_t slot = thread_index(); slot < p.num_slots; slot += kThreads) {
      advance(p, slot, entries[slot]);
    }
  }
};

}  // namespace paceline::cuda
