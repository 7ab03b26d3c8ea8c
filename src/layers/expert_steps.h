// The experts of a mixture step by step, with pairs of narrow matrices beside their products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/routing.h"
#include "layers/adapter_weights.h"
#include "layers/gated_mlp.h"
#include "layers/mixture_config.h"
#include "layers/scratch.h"

namespace paceline {

// Rows of a batch, ascending, that one expert computes: those of its products begin at `first_row`.
struct RowsOfExpert {
  size_t expert = 0;
  int64_t first_row = 0;
  std::span<const int32_t> batch_rows;
};

// The slots of a batch, sorted by expert and then by row.
class SortedExperts {
 public:
  SortedExperts(const HostRouting& routing, size_t num_experts);

  // Those that have rows, in ascending order; first_row counts all slots.
  std::span<const RowsOfExpert> groups() const { return groups_; }
  // Of all slots, in this order.
  std::span<const int32_t> batch_rows() const { return rows_; }
  std::span<const float> weights() const { return weights_; }
  // Where a slot stands in the routing: row * slots + slot.
  std::span<const size_t> places() const { return places_; }

 private:
  std::vector<int32_t> rows_;
  std::vector<float> weights_;
  std::vector<size_t> places_;
  std::vector<RowsOfExpert> groups_;
};

// Appends the segments of an expert's product (gate_up or down), as Backend::add_lora takes them.
using ListExpertSegments = std::function<void(BlockProduct product, const RowsOfExpert& rows,
                                              std::vector<LoraSegment>& segments)>;

// Backend::mix_experts with the segments' products added to those of the experts. Without segments
// it has the bits of mix_experts, and a row has the bits that it has alone.
void mix_adapted_experts(Backend& backend, std::span<const GatedMlp> experts,
                         const Routing& routing, const ListExpertSegments& list_segments,
                         const Tensor& x, Scratch& scratch, const Tensor& out);

// Takes of the arena what it takes at most for `rows` rows, until the caller's frame ends.
void take_expert_steps(Scratch& scratch, const MixtureConfig& config, int64_t hidden_size,
                       int64_t rows);

}  // namespace paceline
