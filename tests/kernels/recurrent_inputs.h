// Inputs of operations on states.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/recurrent.h"
#include "tensor/memory.h"

namespace paceline {

// Rows of one sequence for the delta rule, in memory that the CPU reaches: decays below 1, and
// blocks that hold NaN.
struct DeltaRowInputs {
  DeltaRowInputs(Memory& memory, const DeltaShape& delta, int64_t num_rows, int64_t num_blocks,
                 uint64_t seed);

  // Rows [begin, end), whose state stands in `block`; there is one block of open rows.
  void run(RecurrentOps& ops, int64_t begin, int64_t end, int32_t block,
           std::span<const StateSave> saves = {}) const;

  DeltaShape shape;
  OwnedTensor q, k;       // [rows, key_heads, key_dim]
  OwnedTensor v, out;     // [rows, value_heads, value_dim]
  OwnedTensor log_decay;  // [rows, decay_width]
  OwnedTensor beta;       // [rows, value_heads]
  OwnedTensor skip;       // [value_heads]
  OwnedTensor states, open_rows;
};

// Rows of one sequence for a short convolution, likewise.
struct ConvolutionRowInputs {
  ConvolutionRowInputs(Memory& memory, const ConvolutionShape& convolution, int64_t num_rows,
                       int64_t num_blocks, uint64_t seed);

  void run(RecurrentOps& ops, int64_t begin, int64_t end, int32_t block,
           std::span<const StateSave> saves = {}) const;

  ConvolutionShape shape;
  OwnedTensor x, out;  // [rows, channels]
  OwnedTensor taps;    // [taps, channels]
  OwnedTensor bias;    // [channels]
  OwnedTensor states, open_rows;
};

}  // namespace paceline
