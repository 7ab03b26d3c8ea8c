// ExpertRows sorts the slots of a batch by expert, so that the rows of each are one product.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/routing.h"

namespace paceline {

class ExpertRows {
 public:
  // A row of the batch and the weight of its product.
  struct Slot {
    int64_t row = 0;
    float weight = 0.0f;
  };
  // The slots [first, first + count) are those of an expert, in ascending order of their rows.
  struct Group {
    int64_t expert = 0;
    int64_t first = 0;
    int64_t count = 0;
  };

  // Every index is checked to be below `num_experts`. Keeps its memory.
  void sort(const Routing& routing, int64_t num_experts);

  // Of the experts that have rows, in ascending order.
  std::span<const Group> groups() const { return groups_; }
  std::span<const Slot> slots() const { return slots_; }
  int64_t num_slots() const { return static_cast<int64_t>(slots_.size()); }

 private:
  std::vector<Slot> slots_;
  std::vector<Group> groups_;
  std::vector<int64_t> next_;  // [experts] where the expert's next slot goes
};

}  // namespace paceline
