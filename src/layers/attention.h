// SelfAttention projects, rotates and stores a batch's rows; then each attends to its sequence.
#pragma once

#include <array>

#include <optional>
#include <string>

#include "layers/batch.h"
#include "layers/linear.h"
#include "layers/rms_norm.h"
#include "layers/scratch.h"

namespace paceline {

struct AttentionConfig {
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  AttentionParams params;
  bool qk_norm = false;  // RMS norm over each head of q and k, before the rotation
  bool qkv_bias = false;
  bool output_bias = false;
  RmsNormOptions norm;
};

class SelfAttention {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.self_attn".
  SelfAttention(const LoadContext& context, const std::string& name, const AttentionConfig& config);

  // In place; x, out [rows, hidden]; `rope_table` from Rope::table for these rows.
  void forward(Backend& backend, const Tensor& x, const Tensor& rope_table, const GroupBatch& group,
               const BlockAdapters& adapters, const KvStore& store, Scratch& scratch,
               const Tensor& out) const;

  std::array<const Linear*, 2> products() const { return {&qkv_, &output_}; }

  // Its parts, for a pass that computes them in another way (training).
  const AttentionConfig& config() const { return config_; }
  const Linear& qkv() const { return qkv_; }
  const Linear& output() const { return output_; }
  const RmsNorm* q_norm() const { return q_norm_ ? &*q_norm_ : nullptr; }
  const RmsNorm* k_norm() const { return k_norm_ ? &*k_norm_ : nullptr; }
  // The same, for training to replace their values.
  Linear& qkv() { return qkv_; }
  Linear& output() { return output_; }
  RmsNorm* q_norm() { return q_norm_ ? &*q_norm_ : nullptr; }
  RmsNorm* k_norm() { return k_norm_ ? &*k_norm_ : nullptr; }

 private:
  AttentionConfig config_;
  Linear qkv_;
  Linear output_;
  std::optional<RmsNorm> q_norm_, k_norm_;
};

}  // namespace paceline
