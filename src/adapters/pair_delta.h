// PairDelta adds scale * B A of a LoRA pair to the rows of the matrix that the pair changes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapters/adapter.h"

namespace paceline {

// Computes in float32, whatever the types of A and B. Immutable: several threads may add rows.
class PairDelta {
 public:
  explicit PairDelta(const LoraPair& pair);

  // Adds row `row` of scale * B A to `values` [in]. Each element is scale times the sum over the
  // rank, in ascending order.
  void add_to_row(int64_t row, std::span<float> values) const;

 private:
  int64_t rank_ = 0;
  int64_t in_ = 0;
  float scale_ = 0;
  std::vector<float> a_;  // [rank, in]
  std::vector<float> b_;  // [out, rank]
};

}  // namespace paceline
