#include "kernels/cpu/expert_rows.h"

#include <fmt/format.h>

#include "base/error.h"

namespace paceline {

void ExpertRows::sort(const Routing& routing, int64_t num_experts) {
  const int64_t rows = routing.num_rows(), slots = routing.num_slots();
  const auto expert_of = [&](int64_t row, int64_t slot) {
    return routing.experts.row<int32_t>(row)[slot];
  };
  next_.assign(static_cast<size_t>(num_experts), 0);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t slot = 0; slot < slots; ++slot) {
      const int64_t expert = expert_of(row, slot);
      PL_CHECK(expert >= 0 && expert < num_experts,
               fmt::format("mix_experts: expert {} of {}", expert, num_experts));
      ++next_[static_cast<size_t>(expert)];
    }
  }
  groups_.clear();
  int64_t first = 0;
  for (int64_t expert = 0; expert < num_experts; ++expert) {
    int64_t& next = next_[static_cast<size_t>(expert)];
    const int64_t count = next;
    next = first;
    if (count > 0) groups_.push_back({expert, first, count});
    first += count;
  }
  slots_.resize(static_cast<size_t>(first));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t slot = 0; slot < slots; ++slot) {
      int64_t& next = next_[static_cast<size_t>(expert_of(row, slot))];
      slots_[static_cast<size_t>(next++)] = {row, routing.weights.row<float>(row)[slot]};
    }
  }
}

}  // namespace paceline
