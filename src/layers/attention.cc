#include "layers/attention.h"

#include <array>

#include "kernels/backend.h"

namespace paceline {
namespace {

Linear load_qkv(const LoadContext& context, const std::string& name,
                const AttentionConfig& config) {
  const int64_t kv_width = config.num_kv_heads * config.head_dim;
  const std::array<Projection, 3> parts = {{
      {name + ".q_proj", config.num_heads * config.head_dim},
      {name + ".k_proj", kv_width},
      {name + ".v_proj", kv_width},
  }};
  return Linear(context, parts, config.hidden_size,
                config.qkv_bias ? Linear::Bias::stored : Linear::Bias::none);
}

Linear load_output(const LoadContext& context, const std::string& name,
                   const AttentionConfig& config) {
  const std::array<Projection, 1> parts = {{{name + ".o_proj", config.hidden_size}}};
  return Linear(context, parts, config.num_heads * config.head_dim,
                config.output_bias ? Linear::Bias::stored : Linear::Bias::none);
}

// Columns [first, first + heads * head_dim) of x [rows, width] as [rows, heads, head_dim].
Tensor heads_of(const Tensor& x, int64_t first, int64_t num_heads, int64_t head_dim) {
  return x.as_strided({x.size(0), num_heads, head_dim}, {x.stride(0), head_dim, 1}, first);
}

}  // namespace

SelfAttention::SelfAttention(const LoadContext& context, const std::string& name,
                             const AttentionConfig& config)
    : config_(config),
      qkv_(load_qkv(context, name, config)),
      output_(load_output(context, name, config)) {
  if (!config.qk_norm) return;
  q_norm_.emplace(context, name + ".q_norm", config.head_dim, config.norm);
  k_norm_.emplace(context, name + ".k_norm", config.head_dim, config.norm);
}

void SelfAttention::forward(Backend& backend, const Tensor& x, const Tensor& rope_table,
                            const GroupBatch& group, const BlockAdapters& adapters,
                            const KvStore& store, Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const int64_t rows = x.size(0);
  const int64_t head_dim = config_.head_dim;
  const int64_t q_width = config_.num_heads * head_dim;
  const int64_t kv_width = config_.num_kv_heads * head_dim;

  const Tensor qkv = scratch.take_rows(rows, q_width + 2 * kv_width);
  qkv_.forward(backend, x, qkv);
  adapters.add(backend, BlockProduct::qkv, x, qkv);
  const Tensor q = heads_of(qkv, 0, config_.num_heads, head_dim);
  const Tensor k = heads_of(qkv, q_width, config_.num_kv_heads, head_dim);
  const Tensor v = heads_of(qkv, q_width + kv_width, config_.num_kv_heads, head_dim);

  if (q_norm_) {
    q_norm_->forward(backend, q, q);
    k_norm_->forward(backend, k, k);
  }
  backend.rope(rope_table, q);
  backend.rope(rope_table, k);
  backend.store_kv(k, v, group.slots, store);

  backend.attention(q, store, group.slices, config_.params, q);
  const Tensor attended = qkv.slice(1, 0, q_width);
  output_.forward(backend, attended, out);
  adapters.add(backend, BlockProduct::output, attended, out);
}

}  // namespace paceline
