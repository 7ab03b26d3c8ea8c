// The other operations of a decoder block on arrays, each with the bits of the serving forward.
#pragma once

#include <optional>
#include <span>

#include "autodiff/array.h"
#include "layers/attention.h"
#include "layers/norm.h"
#include "train/linear_operation.h"
#include "train/sequence_store.h"

namespace paceline {

// x [rows, width] -> the same shape. Weights, gradients and backends must outlive the arrays, here
// and below.
autodiff::Array apply_norm(Backend& backend, const Norm& norm, const NormGradient& gradient,
                           const autodiff::Array& x, Elements elements = Elements::computed);

// x + y * scale
autodiff::Array apply_sum(Backend& backend, const autodiff::Array& x, const autodiff::Array& y,
                          float scale, Elements elements = Elements::computed);

// The angles of a batch's positions, and those of the rotation back.
struct RotaryTables {
  Tensor forward;   // [rows, half, 2]
  Tensor backward;  // the same with the sines negated
};

// What the positions of a batch do to queries and keys, as PositionInputs.
struct PositionTables {
  const RotaryTables* rope = nullptr;  // null: nothing rotates
  std::span<const float> query_factors = {};
};

// Those of the norms of q and k; nothing: they aren't trained.
struct HeadNormGradients {
  std::vector<NormGradient> q;
  std::vector<NormGradient> k;
};

// What attention does between its products: norms of q and k, rotation, keys and values as the
// cache stores them, attention within each sequence, the gates of its output.
//                          qkv [rows, (heads + 2 kv_heads) head_dim] -> [rows, heads head_dim]
autodiff::Array apply_attention(Backend& backend, const SelfAttention& attention,
                                const HeadNormGradients& norm_gradients,
                                const PositionTables& positions, SequenceStore& store,
                                const autodiff::Array& qkv);

}  // namespace paceline
