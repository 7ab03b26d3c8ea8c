// Rotary positions and attention, by their definitions: every score is computed and kept.
//
// The attention that training runs on comes from a backend; this one says what it must compute.
#pragma once

#include <cstdint>

#include "autodiff/array.h"

namespace paceline::autodiff {

// table[r, i] = {cos, sin}(positions[r] * inv_freq[i]) * scale, the angle a float32 product.
// positions [rows] int32, inv_freq [half]; the result [rows, half, 2], without derivative
Array rope_table(const Array& positions, const Array& inv_freq, float scale);

// Rotates (x[.., r, h, i], x[.., r, h, i + half]) by table[r, i]; elements from 2 * half on stay
// (rotate_half of HF transformers). The table is a constant.  x [..., rows, heads, head_dim], table
// [rows, half, 2] float32
Array rope(const Array& x, const Array& table);

struct AttentionOptions {
  float scale = 1.0f;     // multiplies q.k
  float soft_cap = 0.0f;  // > 0: scores become cap * tanh(score / cap)
  int64_t window = 0;     // > 0: position p sees (p - window, p]; 0: all of [0, p]
};

// Causal attention. The last query stands at the last key's position; num_heads is a multiple of
// num_kv_heads, and neighbouring query heads read one key head. Errors: invalid.
// q [..., queries, num_heads, head_dim], k [..., keys, num_kv_heads, head_dim], v [..., keys,
// num_kv_heads, value_dim]; the result [..., queries, num_heads, value_dim]; at most one dimension
// in front
Array attention(const Array& q, const Array& k, const Array& v, const AttentionOptions& options);

}  // namespace paceline::autodiff
