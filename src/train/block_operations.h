// The other operations of a decoder block on arrays, each with the bits of the serving forward.
#pragma once

#include <optional>
#include <span>

#include "autodiff/array.h"
#include "layers/attention.h"
#include "layers/rms_norm.h"
#include "train/sequence_store.h"

namespace paceline {

// To this the gradient of a norm's weight is added in the backward pass; nothing: it isn't trained.
using NormGradient = std::optional<Tensor>;  // [width] float32

// x [rows, width] -> the same shape. Weights, gradients and backends must outlive the arrays, here
// and below.
autodiff::Array apply_norm(Backend& backend, const RmsNorm& norm, const NormGradient& gradient,
                           const autodiff::Array& x);

// gate_up [rows, 2 * width] -> activation(gate) * up [rows, width]
autodiff::Array apply_gated_activation(Backend& backend, Activation kind,
                                       const autodiff::Array& gate_up);

// x + y
autodiff::Array apply_sum(Backend& backend, const autodiff::Array& x, const autodiff::Array& y);

// The angles of a batch's positions, and those of the rotation back.
struct RotaryTables {
  Tensor forward;   // [rows, half, 2]
  Tensor backward;  // the same with the sines negated
};

// Those of the norms of q and k.
struct HeadNormGradients {
  NormGradient q;
  NormGradient k;
};

// What attention does between its products: norms of q and k, rotation, keys and values as the
// cache stores them, attention within each sequence.
//                          qkv [rows, (heads + 2 kv_heads) head_dim] -> [rows, heads head_dim]
autodiff::Array apply_attention(Backend& backend, const SelfAttention& attention,
                                const HeadNormGradients& norm_gradients, const RotaryTables& tables,
                                SequenceStore& store, const autodiff::Array& qkv);

}  // namespace paceline
