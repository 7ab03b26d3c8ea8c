// A pass of attention over packed sequences and its gradients, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/gradients.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {

struct AttentionPassShape {
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 32;
  float soft_cap = 0.0f;
  int64_t window = 0;
  std::vector<int64_t> lengths;  // of the sequences
  // With bfloat16, keys and values are stored in it, and gradients may round their operands.
  OperandRounding rounding = OperandRounding::none;

  AttentionParams params() const;
  int64_t num_rows() const;
  std::string name() const;
};

struct AttentionPass {
  AttentionPass(const AttentionPassShape& wanted, uint64_t seed, Memory& memory);

  // out and log_sum_exp of q, k and v.
  void forward(Backend& backend);
  // dq, dk and dv of dout.
  void backward(Backend& backend);
  // All of dq, then dk, then dv.
  std::vector<float> gradients() const;

  AttentionPassShape shape;
  OwnedTensor q, k, v, out, log_sum_exp, dout, dq, dk, dv;
  OwnedStore stored;
  std::vector<SequenceRows> sequences;
  std::vector<std::vector<int32_t>> block_tables;
  std::vector<AttentionSlice> slices;
};

}  // namespace paceline
