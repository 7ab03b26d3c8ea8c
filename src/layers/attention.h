// SelfAttention projects, rotates and stores a batch's rows; then each attends to its sequence.
#pragma once

#include <array>

#include <span>
#include <string>
#include <vector>

#include "layers/batch.h"
#include "layers/disentangled_scores.h"
#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/scratch.h"

namespace paceline {

// The norms of q and k before the rotation: of each head with one weight for all, of the whole
// projection, or of each head with a weight of its own.
enum class QkNorm : uint8_t { none, head, width, each_head };

// What its parts are called. With QkNorm::each_head the norm of head 3 is q_norm + ".norms.3",
// unless all heads' are rows of one tensor.
struct AttentionNames {
  std::string layer = "self_attn";  // within its block
  std::string q = "q_proj";
  std::string k = "k_proj";
  std::string v = "v_proj";
  std::string qkv = "qkv_proj";  // all three as one matrix
  std::string output = "o_proj";
  std::string q_norm = "q_norm";
  std::string k_norm = "k_norm";
  std::string gate = "g_proj";

  bool operator==(const AttentionNames&) const = default;
};

struct AttentionConfig {
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  AttentionParams params;
  RopePairs rope_pairs = RopePairs::halves;
  QkNorm qk_norm = QkNorm::none;
  bool value_norm = false;  // of each head of the values, without weights
  // What k_proj makes is the values, too, before the keys' norm and rotation. With value_norm.
  bool values_are_keys = false;
  bool shares_cache = false;  // it has queries alone, and reads another layer's keys and values
  bool qkv_bias = false;
  bool output_bias = false;
  bool sinks = false;        // a score without a value for each head, beside those of the keys
  bool has_gate = false;     // q_proj has gates behind each head's queries: out *= sigmoid(gate)
  bool head_gates = false;   // g_proj has a gate for each head: its out *= sigmoid(gate)
  bool fused_qkv = false;    // the files hold q, k and v as one matrix
  bool grouped_qkv = false;  // whose rows are in turn those of a kv head: queries, key, value
  // Or has so many parts of equal size, each with rows of queries, then of values, then of keys.
  int64_t qkv_shards = 0;
  bool rotates_first = false;  // q and k are normalised behind the rotation
  bool joined_norms = false;   // of QkNorm::each_head: one tensor [heads, head_dim]
  // > 0: elements of q, k and v are cut to [-clip, clip] before the rotation. Without gates.
  float clip = 0.0f;
  std::optional<DisentangledConfig> disentangled = {};  // scores of distances, of its own
  AttentionNames names = {};
  NormOptions norm;

  // Columns of q_proj.
  int64_t query_width() const { return (has_gate ? 2 : 1) * num_heads * head_dim; }
  int64_t kv_width() const { return num_kv_heads * head_dim; }
  // Those of all products of the input: queries, keys, values, gates of heads.
  int64_t input_width() const {
    const int64_t keys_and_values = shares_cache ? 0 : (values_are_keys ? 1 : 2) * kv_width();
    return query_width() + keys_and_values + (head_gates ? num_heads : 0);
  }
  // Where the values stand: behind all products if none makes them.
  int64_t first_value() const {
    return values_are_keys ? input_width() : query_width() + kv_width();
  }
  // Columns of the products and of values that none makes.
  int64_t row_width() const { return input_width() + (values_are_keys ? kv_width() : 0); }
  bool has_gates() const { return has_gate || head_gates; }  // of either kind
};

// The rows of a matrix with grouped_qkv in the order in which they are packed: the queries of all
// heads, the keys, the values.
std::vector<StoredRows> grouped_qkv_rows(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim);

// The same with `shards` parts, of `width` queries, keys and values in all.
std::vector<StoredRows> sharded_qkv_rows(int64_t width, int64_t shards);

// Queries, keys and values side by side in rows.
struct AttentionHeads {
  Tensor q;     // [rows, heads, head_dim]; with gates these stand between its heads
  Tensor k, v;  // [rows, kv_heads, head_dim]; empty where the cache is another layer's

  // Views of qkv [rows, row_width()].
  AttentionHeads(const Tensor& qkv, const AttentionConfig& config);
};

// What forward() takes of the arena, for `rows` rows.
struct AttentionScratch {
  Tensor qkv;  // [rows, row_width()]
  Tensor
      attended;  // [rows, heads * head_dim], in the place of the queries where they have no gates
  Tensor log_sum_exp;     // [rows, heads], with sinks alone
  Tensor position_terms;  // [rows, DisentangledConfig::row_width()], with that alone

  AttentionScratch(Scratch& scratch, const AttentionConfig& config, int64_t rows);
};

// What the positions of a batch's rows do to queries and keys.
struct PositionInputs {
  const Tensor* rope_table = nullptr;  // from Rope::table for these rows; null: nothing rotates
  std::span<const float> query_factors = {};  // [rows], behind the rotation; empty: 1
  const PositionScores* scores = nullptr;     // of all layers; null: none
};

class SelfAttention {
 public:
  // `name` is the canonical prefix, e.g. "layers.0.self_attn".
  SelfAttention(const LoadContext& context, const std::string& name, const AttentionConfig& config);

  // In place; x, out [rows, hidden].
  void forward(Backend& backend, const Tensor& x, const PositionInputs& positions,
               const BatchArrays::Group& group, const BlockAdapters& adapters, const KvStore& store,
               Scratch& scratch, const Tensor& out) const;
  // The part of it between the products and the cache, from q and k of `from` to those of `heads`:
  // norms, rotation, factors of q.
  void place_heads(Backend& backend, const PositionInputs& positions, const AttentionHeads& from,
                   const AttentionHeads& heads) const;
  // The same in place, and stores keys and values, if it has any; what heads.k and heads.v hold
  // afterwards is undefined.
  void place_and_store(Backend& backend, const PositionInputs& positions,
                       const AttentionHeads& heads, Indices<int64_t> slots,
                       const KvStore& store) const;

  // Multiplies what attention read by the sigmoids of the gates in qkv, in place.
  //                                     qkv as of its product, read, out [rows, heads * head_dim]
  void gate_heads(Backend& backend, const Tensor& qkv, const Tensor& read, const Tensor& out) const;
  // Writes the gates' columns of dqkv, and dread.
  struct HeadGateGradient {
    const Tensor& qkv;
    const Tensor& read;
    const Tensor& dout;
    const Tensor& dqkv;
    const Tensor& dread;
  };
  void gate_gradient(Backend& backend, const HeadGateGradient& of) const;

  std::array<const Linear*, 2> products() const { return {&qkv_, &output_}; }
  std::array<Linear*, 2> products() { return {&qkv_, &output_}; }  // to replace their values

  // Its parts, for a pass that computes them in another way (training).
  const AttentionConfig& config() const { return config_; }
  const Linear& qkv() const { return qkv_; }
  const Linear& output() const { return output_; }
  // None, one, or with QkNorm::each_head one for each head.
  std::span<const Norm> q_norms() const { return q_norms_; }
  std::span<const Norm> k_norms() const { return k_norms_; }
  const Tensor* sinks() const { return sinks_ ? &sinks_->view : nullptr; }  // [heads] float32
  // What norm `index` of `count` is over, of heads [rows, heads, head_dim] of q or k.
  Tensor norm_input(const Tensor& heads, size_t index) const;
  // The same, for training to replace their values.
  std::span<Norm> q_norms() { return q_norms_; }
  std::span<Norm> k_norms() { return k_norms_; }

 private:
  void load_norms(const LoadContext& context, const std::string& name);
  void load_joined_norms(const LoadContext& context, const std::string& name, int64_t heads,
                         std::vector<Norm>& norms) const;
  void normalise(Backend& backend, const AttentionHeads& from, const AttentionHeads& heads) const;
  // x, out [rows, heads, head_dim] of q or k, whose norms these are.
  void normalise_heads(Backend& backend, std::span<const Norm> norms, const Tensor& x,
                       const Tensor& out) const;
  void rotate(Backend& backend, const PositionInputs& positions, const AttentionHeads& heads) const;
  // These with one gate for each head, in place.
  void gate_whole_heads(Backend& backend, const Tensor& qkv, const Tensor& read) const;
  void whole_gate_gradient(Backend& backend, const HeadGateGradient& of) const;
  // The columns of head `head`'s gates in qkv, and of its outputs.
  Tensor gates_of(const Tensor& qkv, int64_t head) const;
  Tensor gates_of_heads(const Tensor& qkv) const;  // [rows, heads], with head_gates
  Tensor outputs_of(const Tensor& rows, int64_t head) const;
  void clip(Backend& backend, const AttentionHeads& heads) const;
  void scale_queries(Backend& backend, const PositionInputs& positions, const Tensor& q) const;
  void place_queries(Backend& backend, const PositionInputs& positions, const Tensor& q) const;

  AttentionConfig config_;
  Linear qkv_;
  Linear output_;
  std::vector<Norm> q_norms_, k_norms_;
  std::optional<OwnedTensor> unit_weights_;  // [head_dim] ones, with value_norm
  std::optional<DisentangledScores> disentangled_;
  std::optional<OwnedTensor> sinks_;         // [heads] float32
  std::optional<OwnedTensor> gate_origins_;  // [heads] zeros, with head_gates
};

}  // namespace paceline
