// Chooses the experts of a row of router's logits: a warp for each row.
#pragma once

#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/row_results.h"

namespace paceline::cuda {

constexpr int64_t kMostExperts = 1024;

// RoutingParams of kernels/routing.h.
struct RouteParams {
  ConstRows logits;
  const float* choice_bias = nullptr;  // may be null
  int32_t* experts = nullptr;
  int64_t experts_stride = 0;
  Rows weights;
  int64_t num_experts = 0;
  int64_t experts_per_token = 0;
  int64_t num_groups = 1;
  int64_t groups_kept = 1;
  float scale = 1.0f;
  bool is_sigmoid = false;
  bool normalises = false;
  bool has_shared_expert = false;
  bool has_shared_gate = false;
};

struct RouteShared {
  float scores[kMostExperts];
  float values[kMostExperts];  // of the choice
  float sums[kMostExperts];    // of the groups' two highest values
  // Flags of groups and of experts: bytes, as poison is no bool.
  uint8_t is_kept[kMostExperts];
  uint8_t is_chosen[kMostExperts];
};

// A place and its value.
struct Candidate {
  float value = -kInfinity;
  uint32_t index = 0xFFFFFFFFu;
};

// Of equal values the lower index is better; any place is better than none.
PL_DEVICE Candidate better(const Candidate& a, const Candidate& b) {
  if (a.index == 0xFFFFFFFFu) return b;
  if (b.index == 0xFFFFFFFFu) return a;
  if (a.value != b.value) return a.value > b.value ? a : b;
  return a.index < b.index ? a : b;
}

// Marks the `count` highest of the values; all lanes of the warp call it. A lane reads those values
// alone that are `lane` modulo 32, and remembers in a bit each which of them it has given.
PL_DEVICE void choose_highest(const float* values, uint32_t num_values, int64_t count,
                              uint8_t* is_chosen) {
  static_assert(kMostExperts <= int64_t{32} * kWarpLanes);
  uint32_t given = 0;
  for (int64_t round = 0; round < count; ++round) {
    Candidate best;
    for (uint32_t i = lane_index(); i < num_values; i += kWarpLanes) {
      if ((given >> i / kWarpLanes & 1u) == 0) best = better(best, {values[i], i});
    }
    for (uint32_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
      const float value = shuffle_xor(best.value, distance);
      const uint32_t index = shuffle_xor(best.index, distance);
      best = better(best, {value, index});
    }
    if (best.index % kWarpLanes == lane_index()) given |= 1u << best.index / kWarpLanes;
  }
  for (uint32_t i = lane_index(); i < num_values; i += kWarpLanes) {
    is_chosen[i] = given >> i / kWarpLanes & 1u;
  }
  sync_warp();
}

struct RouteRows {
  static constexpr std::string_view kName = "route";
  static constexpr uint32_t kThreads = kWarpLanes;
  using Params = RouteParams;
  using Shared = RouteShared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const float* const logits = p.logits.row(block_index().x);
    int32_t* const experts = p.experts + int64_t{block_index().x} * p.experts_stride;
    float* const weights = p.weights.row(block_index().x);
    if (has_spoilt_logit(p, logits)) return spoil(p, experts, weights);
    make_scores(p, logits, shared);
    if (p.num_groups > 1) keep_groups(p, shared);
    choose_highest(shared.values, static_cast<uint32_t>(p.num_experts), p.experts_per_token,
                   shared.is_chosen);
    if (lane_index() == 0) write(p, logits, shared, experts, weights);
  }

 private:
  PL_DEVICE static bool has_spoilt_logit(const Params& p, const float* logits) {
    const int64_t count = p.num_experts + (p.has_shared_gate ? 1 : 0);
    bool is_spoilt = false;
    for (int64_t i = lane_index(); i < count; i += kWarpLanes) {
      is_spoilt = is_spoilt || !is_finite(logits[i]);
    }
    return any(is_spoilt);
  }

  // The first experts, with weights of NaN.
  PL_DEVICE static void spoil(const Params& p, int32_t* experts, float* weights) {
    const int64_t slots = p.experts_per_token + (p.has_shared_expert ? 1 : 0);
    for (int64_t i = lane_index(); i < slots; i += kWarpLanes) {
      experts[i] = static_cast<int32_t>(i < p.experts_per_token ? i : p.num_experts);
      weights[i] = float_of_bits(0x7FC00000u);
    }
  }

  // Softmax or sigmoid of the logits, and what the choice is by.
  PL_DEVICE static void make_scores(const Params& p, const float* logits, Shared& shared) {
    float top = -kInfinity, sum = 0.0f;
    if (!p.is_sigmoid) {
      for (int64_t i = lane_index(); i < p.num_experts; i += kWarpLanes) {
        top = Maximum::combine(top, logits[i]);
      }
      top = reduce_warp<Maximum>(top);
      for (int64_t i = lane_index(); i < p.num_experts; i += kWarpLanes) {
        sum = sum + exponential(logits[i] - top);
      }
      sum = reduce_warp<Sum>(sum);
    }
    for (int64_t i = lane_index(); i < p.num_experts; i += kWarpLanes) {
      const float score = p.is_sigmoid ? sigmoid(logits[i]) : exponential(logits[i] - top) / sum;
      shared.scores[i] = score;
      shared.values[i] = p.choice_bias != nullptr ? score + p.choice_bias[i] : score;
    }
    sync_warp();
  }

  PL_DEVICE static float sum_of_two_highest(const float* values, int64_t count) {
    float first = -kInfinity, second = -kInfinity;
    for (int64_t i = 0; i < count; ++i) {
      const float value = values[i];
      if (value > first) {
        second = first;
        first = value;
      } else if (value > second) {
        second = value;
      }
    }
    return count > 1 ? first + second : first;
  }

  // Lowers the values outside the groups with the highest sums.
  PL_DEVICE static void keep_groups(const Params& p, Shared& shared) {
    const int64_t size = p.num_experts / p.num_groups;
    for (int64_t group = lane_index(); group < p.num_groups; group += kWarpLanes) {
      shared.sums[group] = sum_of_two_highest(shared.values + group * size, size);
    }
    choose_highest(shared.sums, static_cast<uint32_t>(p.num_groups), p.groups_kept, shared.is_kept);
    for (int64_t i = lane_index(); i < p.num_experts; i += kWarpLanes) {
      if (shared.is_kept[i / size] == 0) shared.values[i] = -kInfinity;
    }
  }

  PL_DEVICE static void write(const Params& p, const float* logits, const Shared& shared,
                              int32_t* experts, float* weights) {
    // transformers adds it to sums of sigmoids, which may be 0.
    float sum = p.is_sigmoid ? 1e-20f : 0.0f;
    int64_t slot = 0;
    for (int64_t i = 0; i < p.num_experts && slot < p.experts_per_token; ++i) {
      if (shared.is_chosen[i] == 0) continue;
      experts[slot++] = static_cast<int32_t>(i);
      sum = sum + shared.scores[i];
    }
    for (int64_t i = 0; i < slot; ++i) {
      const float score = shared.scores[experts[i]];
      weights[i] = (p.normalises ? score / sum : score) * p.scale;
    }
    if (!p.has_shared_expert) return;
    experts[slot] = static_cast<int32_t>(p.num_experts);
    weights[slot] = p.has_shared_gate ? sigmoid(logits[p.num_experts]) : 1.0f;
  }
};

// Adds the experts' products of each row: multiply-adds from zero in the order of its slots.
struct CombineExperts {
  static constexpr std::string_view kName = "combine_experts";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows products;
    const int32_t* places = nullptr;  // [rows, slots], the row of `products` of each slot; null:
                                      // they are in this order
    ConstRows weights;
    int64_t num_slots = 0;
    Rows out;
    int64_t width = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t first = int64_t{block_index().x} * p.num_slots;
    const float* const weights = p.weights.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    for_each_column(p.width, [&p, first, weights, out](int64_t i) {
      float sum = 0.0f;
      for (int64_t slot = 0; slot < p.num_slots; ++slot) {
        const int64_t place = p.places != nullptr ? p.places[first + slot] : first + slot;
        sum = fused_multiply_add(weights[slot], p.products.row(place)[i], sum);
      }
      out[i] = sum;
    });
  }
};

// Backend::add_scaled_rows: rows of the grid are rows that are added to.
struct AddScaledRows {
  static constexpr std::string_view kName = "add_scaled_rows";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows x;
    const int32_t* order = nullptr;  // rows of x by the row that they are added to, then ascending
    const int32_t* first_of = nullptr;  // in `order`, of each row that is added to, and the end
    const int32_t* targets = nullptr;   // these rows
    const float* weights = nullptr;     // of the rows of x
    Rows out;
    int64_t width = 0;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int32_t first = p.first_of[block_index().x], end = p.first_of[block_index().x + 1];
    float* const out = p.out.row(p.targets[block_index().x]);
    for_each_column(p.width, [&p, first, end, out](int64_t i) {
      float sum = out[i];
      for (int32_t k = first; k < end; ++k) {
        const int32_t row = p.order[k];
        sum = fused_multiply_add(p.weights[row], p.x.row(row)[i], sum);
      }
      out[i] = sum;
    });
  }
};

}  // namespace paceline::cuda
