// Operands of a mixture of experts: how the experts of a row are chosen, and the choice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace paceline {

enum class ExpertScore : uint8_t {
  softmax,
  sigmoid,
  // Experts are chosen one after the other, the one with the highest logit s first. The weight of
  // each is the softmax over those that are left with a logit x of (s - x) / max(|x|, s) <= 2
  // jitter (Liu et al., "GRIN: GRadient-INformed MoE", 2024; transformers' modeling_phimoe).
  sparse_mixer,
};

// An expert that every row has, beside those that it chooses.
enum class SharedExpert : uint8_t {
  none,
  plain,  // of weight 1
  gated,  // of weight sigmoid(its logit)
};

// The chosen experts of a row are the `experts_per_token` with the highest scores (Shazeer et al.,
// "Outrageously Large Neural Networks", 2017); of equal scores the lower index is higher.
struct RoutingParams {
  int64_t num_experts = 0;  // to choose from
  int64_t experts_per_token = 0;
  ExpertScore score = ExpertScore::softmax;  // over all experts
  float jitter = 0.0f;                       // of sparse_mixer
  // Divides the chosen scores by their sum. The softmax over the chosen logits alone is the same.
  bool normalise = false;
  float scale = 1.0f;  // of the weights, at last
  // Experts stand in groups of equal size (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024). They
  // are chosen from the `groups_kept` groups with the highest values: the sum of a group's two
  // highest scores, or the highest one (DeepSeek V2).
  int64_t num_groups = 1;
  int64_t groups_kept = 1;
  bool groups_by_highest = false;
  SharedExpert shared = SharedExpert::none;  // its index is num_experts

  int64_t num_logits() const { return num_experts + (shared == SharedExpert::gated ? 1 : 0); }
  int64_t num_slots() const { return experts_per_token + (shared == SharedExpert::none ? 0 : 1); }

  bool operator==(const RoutingParams&) const = default;
};

// The slots of one row.
struct ChosenRow {
  int32_t* experts;
  float* weights;
};

// Each row's experts and their weights, a slot each.
struct Routing {
  Tensor experts;  // [rows, slots] int32, ascending in a row
  Tensor weights;  // [rows, slots] float32

  int64_t num_rows() const { return experts.size(0); }
  int64_t num_slots() const { return experts.size(1); }
  ChosenRow row(int64_t index) const {
    return {experts.row<int32_t>(index), weights.row<float>(index)};
  }
};

// A Routing in the CPU's memory, one row after another.
struct HostRouting {
  int64_t num_slots = 0;
  std::vector<int32_t> experts;  // [rows * slots]
  std::vector<float> weights;    // [rows * slots]

  std::span<const int32_t> experts_of(size_t row) const {
    const auto slots = static_cast<size_t>(num_slots);
    return std::span(experts).subspan(row * slots, slots);
  }
};

// Implements Backend::read_routing where the CPU can read the tensors.
HostRouting copy_routing(const Routing& routing);

// Implements Backend::route for a row with a logit that isn't finite: the first experts, with
// weights of NaN.
void spoil_row(const RoutingParams& params, const ChosenRow& out);

}  // namespace paceline
