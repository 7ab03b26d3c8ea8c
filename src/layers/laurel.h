// Laurel is a learned residual beside a mixer: x + norm(right(left(x))) (Menghani et al., "LAuReL:
// Learned Augmented Residual Layer", 2024; Gemma 3n).
#pragma once

#include <array>
#include <string>

#include "layers/adapter_weights.h"
#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/scratch.h"

namespace paceline {

class Laurel {
 public:
  // `block` is the canonical prefix of the block, e.g. "layers.0".
  Laurel(const LoadContext& context, const std::string& block, int64_t rank, int64_t hidden_size,
         const NormOptions& norm);

  // In place; x, out [rows, hidden].
  void forward(Backend& backend, const Tensor& x, const BlockAdapters& adapters, Scratch& scratch,
               const Tensor& out) const;

  std::array<const Linear*, 2> products() const { return {&left_, &right_}; }

 private:
  int64_t rank_;
  Linear left_;   // [rank, hidden]
  Linear right_;  // [hidden, rank]
  Norm norm_;
};

// What forward() takes of the arena.
struct LaurelScratch {
  Tensor inner;  // [rows, rank]
  Tensor added;  // [rows, hidden]

  LaurelScratch(Scratch& scratch, int64_t rank, int64_t hidden_size, int64_t rows)
      : inner(scratch.take_rows(rows, rank)), added(scratch.take_rows(rows, hidden_size)) {}
};

}  // namespace paceline
