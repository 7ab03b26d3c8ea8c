#include "tests/kernels/attention_pass.h"

#include <fmt/format.h>

#include <cmath>

namespace paceline {
namespace {

constexpr int64_t kPassBlock = 16;

}  // namespace

AttentionParams AttentionPassShape::params() const {
  return {.scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
          .soft_cap = soft_cap,
          .window = window};
}

int64_t AttentionPassShape::num_rows() const {
  int64_t rows = 0;
  for (const int64_t length : lengths) rows += length;
  return rows;
}

std::string AttentionPassShape::name() const {
  std::string name = fmt::format("{}/{} dim {}", heads, kv_heads, head_dim);
  if (window > 0) name += fmt::format(" window {}", window);
  if (soft_cap > 0) name += fmt::format(" cap {}", soft_cap);
  for (const int64_t length : lengths) name += fmt::format(" {}", length);
  if (rounding == OperandRounding::bfloat16) name += " bfloat16";
  return name;
}

AttentionPass::AttentionPass(const AttentionPassShape& wanted, uint64_t seed, Memory& memory)
    : shape(wanted) {
  const int64_t rows = shape.num_rows();
  const Extents of_queries = {rows, shape.heads, shape.head_dim};
  const Extents of_keys = {rows, shape.kv_heads, shape.head_dim};
  q = random_tensor(memory, DType::f32, of_queries, seed, 2.0f);
  k = random_tensor(memory, DType::f32, of_keys, seed + 1, 2.0f);
  v = random_tensor(memory, DType::f32, of_keys, seed + 2, 2.0f);
  if (shape.rounding == OperandRounding::bfloat16) {
    for (const OwnedTensor* const tensor : {&k, &v}) {
      auto* const elements = tensor->view.elements<float>();
      for (int64_t i = 0; i < tensor->view.num_elements(); ++i) {
        elements[i] = to_float(to_bfloat16(elements[i]));
      }
    }
  }
  dout = random_tensor(memory, DType::f32, of_queries, seed + 3);
  out = allocate_tensor(memory, DType::f32, of_queries);
  log_sum_exp = allocate_tensor(memory, DType::f32, {rows, shape.heads});
  dq = allocate_tensor(memory, DType::f32, of_queries);
  dk = allocate_tensor(memory, DType::f32, of_keys);
  dv = allocate_tensor(memory, DType::f32, of_keys);
  int64_t row = 0, num_blocks = 0;
  for (const int64_t length : shape.lengths) {
    sequences.push_back({row, length});
    block_tables.emplace_back();
    for (int64_t p = 0; p < length; p += kPassBlock) {
      block_tables.back().push_back(static_cast<int32_t>(num_blocks++));
    }
    row += length;
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    slices.push_back({sequences[i].first_row, sequences[i].num_rows, 0, block_tables[i]});
  }
  stored = OwnedStore(memory, DType::f32, num_blocks, shape.kv_heads, shape.head_dim, kPassBlock);
}

void AttentionPass::forward(Backend& backend) {
  std::vector<int64_t> slots;
  for (size_t i = 0; i < sequences.size(); ++i) {
    for (int64_t p = 0; p < sequences[i].num_rows; ++p) {
      slots.push_back(block_tables[i][static_cast<size_t>(p / kPassBlock)] * kPassBlock +
                      p % kPassBlock);
    }
  }
  backend.store_kv(k.view, v.view, slots, stored.view());
  backend.attention(q.view, stored.view(), slices, shape.params(), out.view, &log_sum_exp.view);
}

void AttentionPass::backward(Backend& backend) {
  backend.gradients().attention_gradient(
      {q.view, k.view, v.view, out.view, log_sum_exp.view, dout.view, shape.rounding}, sequences,
      shape.params(), {dq.view, dk.view, dv.view});
}

std::vector<float> AttentionPass::gradients() const {
  std::vector<float> all = to_vector(dq.view);
  for (const OwnedTensor* const tensor : {&dk, &dv}) {
    const std::vector<float> some = to_vector(tensor->view);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace paceline
