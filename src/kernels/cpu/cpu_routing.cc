// The choice of each row's experts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/finite.h"

namespace paceline {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
// transformers adds it to sums of sigmoids, which may be 0.
constexpr float kLeastSum = 1e-20f;

// Memory for a row.
struct RoutingScratch {
  float* scores;  // [experts]
  float* values;  // [experts] of the choice
  float* sums;    // [groups] of the two highest values, or the highest
  int32_t* kept;  // [groups]

  static int64_t bytes(const RoutingParams& params) {
    return (2 * params.num_experts + params.num_groups) * int64_t{sizeof(float)} +
           params.num_groups * int64_t{sizeof(int32_t)};
  }
  RoutingScratch(std::byte* memory, const RoutingParams& params)
      : scores(reinterpret_cast<float*>(memory)),
        values(scores + params.num_experts),
        sums(values + params.num_experts),
        kept(reinterpret_cast<int32_t*>(sums + params.num_groups)) {}
};

// Writes the indices of the `count` highest values in ascending order; of equal values the lower
// index is higher.
void find_highest(const float* values, int64_t num_values, int64_t count, int32_t* indices) {
  int64_t found = 0;  // indices[0, found) are sorted by value, the highest first
  for (int64_t i = 0; i < num_values; ++i) {
    if (found == count && values[i] <= values[indices[count - 1]]) continue;
    int64_t at = found < count ? found++ : count - 1;
    for (; at > 0 && values[indices[at - 1]] < values[i]; --at) indices[at] = indices[at - 1];
    indices[at] = static_cast<int32_t>(i);
  }
  std::sort(indices, indices + count);
}

float sum_of_two_highest(const float* values, int64_t count) {
  float first = kLowest, second = kLowest;
  for (int64_t i = 0; i < count; ++i) {
    second = std::max(second, std::min(first, values[i]));
    first = std::max(first, values[i]);
  }
  return count > 1 ? first + second : first;
}

// Lowers the values outside the groups with the highest sums.
void keep_groups(const RoutingParams& params, const RoutingScratch& scratch) {
  const int64_t size = params.num_experts / params.num_groups;
  for (int64_t group = 0; group < params.num_groups; ++group) {
    const float* const values = scratch.values + group * size;
    scratch.sums[group] = params.groups_by_highest ? *std::max_element(values, values + size)
                                                   : sum_of_two_highest(values, size);
  }
  find_highest(scratch.sums, params.num_groups, params.groups_kept, scratch.kept);
  int64_t next = 0;  // of the kept groups
  for (int64_t group = 0; group < params.num_groups; ++group) {
    if (next < params.groups_kept && scratch.kept[next] == group) {
      ++next;
    } else {
      std::fill_n(scratch.values + group * size, size, kLowest);
    }
  }
}

void write_weights(const RoutingParams& params, const float* scores, const ChosenRow& out) {
  float sum = params.score == ExpertScore::sigmoid ? kLeastSum : 0.0f;
  for (int64_t slot = 0; slot < params.experts_per_token; ++slot) sum += scores[out.experts[slot]];
  for (int64_t slot = 0; slot < params.experts_per_token; ++slot) {
    const float score = scores[out.experts[slot]];
    out.weights[slot] = (params.normalise ? score / sum : score) * params.scale;
  }
}

// `values` and `scores` are scratch.
void mix_sparsely(const KernelTable& kernels, const RoutingParams& params, const float* logits,
                  const RoutingScratch& scratch, const ChosenRow& out) {
  const int64_t experts = params.num_experts;
  std::copy_n(logits, experts, scratch.values);
  for (int64_t slot = 0; slot < params.experts_per_token; ++slot) {
    const auto best = std::max_element(scratch.values, scratch.values + experts);
    const float highest = *best;
    int64_t num_kept = 0, place = 0;
    for (int64_t i = 0; i < experts; ++i) {
      if (scratch.values[i] == kLowest) continue;
      const float share = (highest - logits[i]) / std::max(std::abs(logits[i]), highest);
      if (share > 2.0f * params.jitter) continue;
      if (i == best - scratch.values) place = num_kept;
      scratch.scores[num_kept++] = logits[i];
    }
    // Of a highest logit of 0 the share is 0 / 0, which keeps it.
    kernels.softmax(scratch.scores, num_kept, scratch.scores);
    *best = kLowest;
    int64_t at = slot;  // ascending
    const auto expert = static_cast<int32_t>(best - scratch.values);
    for (; at > 0 && out.experts[at - 1] > expert; --at) {
      out.experts[at] = out.experts[at - 1];
      out.weights[at] = out.weights[at - 1];
    }
    out.experts[at] = expert;
    out.weights[at] = scratch.scores[place] * params.scale;
  }
}

void route_row(const KernelTable& kernels, const RoutingParams& params, const float* logits,
               const float* choice_bias, const RoutingScratch& scratch, const ChosenRow& out) {
  const int64_t experts = params.num_experts, shared_slot = params.experts_per_token;
  if (params.score == ExpertScore::sparse_mixer) {
    return mix_sparsely(kernels, params, logits, scratch, out);
  }
  const bool is_softmax = params.score == ExpertScore::softmax;
  (is_softmax ? kernels.softmax : kernels.sigmoid)(logits, experts, scratch.scores);
  for (int64_t i = 0; i < experts; ++i) {
    scratch.values[i] = scratch.scores[i] + (choice_bias != nullptr ? choice_bias[i] : 0.0f);
  }
  if (params.num_groups > 1) keep_groups(params, scratch);
  find_highest(scratch.values, experts, params.experts_per_token, out.experts);
  write_weights(params, scratch.scores, out);
  if (params.shared == SharedExpert::none) return;
  out.experts[shared_slot] = static_cast<int32_t>(experts);
  if (params.shared == SharedExpert::plain) out.weights[shared_slot] = 1.0f;
  if (params.shared == SharedExpert::gated) {
    kernels.sigmoid(logits + experts, 1, out.weights + shared_slot);
  }
}

}  // namespace

HostRouting CpuBackend::do_read_routing(const Routing& routing) { return copy_routing(routing); }

void CpuBackend::do_route(const Tensor& logits, const RoutingParams& params,
                          const Tensor* choice_bias, const Routing& out) {
  const int64_t scratch_bytes = RoutingScratch::bytes(params);
  auto* const memory =
      thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * scratch_bytes);
  const float* const bias = choice_bias != nullptr ? choice_bias->elements<float>() : nullptr;
  // An expert of a row costs about as much as this many elements of an addition.
  constexpr int64_t kExpertElements = 16;
  const int64_t grain =
      std::max<int64_t>(1, kPieceElements / (params.num_experts * kExpertElements));
  threads_.parallel_for(logits.size(0), grain, [&](int64_t begin, int64_t end, int thread_index) {
    const RoutingScratch scratch(memory + thread_index * scratch_bytes, params);
    for (int64_t r = begin; r < end; ++r) {
      const float* const row = logits.row<float>(r);
      const ChosenRow chosen = out.row(r);
      if (is_finite({row, static_cast<size_t>(params.num_logits())})) {
        route_row(kernels_, params, row, bias, scratch, chosen);
      } else {
        spoil_row(params, chosen);
      }
    }
  });
}

}  // namespace paceline
