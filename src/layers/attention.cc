#include "layers/attention.h"

#include <array>
#include <cmath>
#include <vector>

#include "kernels/backend.h"
#include "kernels/gradients.h"
#include "layers/head_products.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

Linear load_qkv(const LoadContext& context, const std::string& name,
                const AttentionConfig& config) {
  const int64_t q_width = config.query_width();
  const int64_t kv_width = config.kv_width();
  const auto bias = config.qkv_bias ? Linear::Bias::stored : Linear::Bias::none;
  if (config.fused_qkv) {
    Projection whole{.name = name + "." + config.names.qkv, .out_features = q_width + 2 * kv_width};
    if (config.grouped_qkv) {
      whole.order = grouped_qkv_rows(config.num_heads, config.num_kv_heads, config.head_dim);
    }
    if (config.qkv_shards > 0) whole.order = sharded_qkv_rows(q_width, config.qkv_shards);
    return Linear(context, std::array{whole}, config.hidden_size, bias);
  }
  const auto part = [&](const std::string& own, int64_t width) {
    return Projection{.name = name + "." + own, .out_features = width};
  };
  std::vector<Projection> parts = {part(config.names.q, q_width)};
  if (!config.shares_cache) {
    parts.push_back(part(config.names.k, kv_width));
    if (!config.values_are_keys) parts.push_back(part(config.names.v, kv_width));
  }
  if (config.head_gates) {
    parts.push_back({.name = name + "." + config.names.gate,
                     .out_features = config.num_heads,
                     .has_bias = false});
  }
  return Linear(context, parts, config.hidden_size, bias);
}

Linear load_output(const LoadContext& context, const std::string& name,
                   const AttentionConfig& config) {
  const std::array<Projection, 1> parts = {
      {{name + "." + config.names.output, config.hidden_size}}};
  return Linear(context, parts, config.num_heads * config.head_dim,
                config.output_bias ? Linear::Bias::stored : Linear::Bias::none);
}

// Columns [first, first + heads * head_dim) of x [rows, width] as [rows, heads, head_dim].
Tensor heads_of(const Tensor& x, int64_t first, int64_t num_heads, int64_t head_dim) {
  return x.as_strided({x.size(0), num_heads, head_dim}, {x.stride(0), head_dim, 1}, first);
}

// [rows, heads, head_dim] as [rows, heads * head_dim].
Tensor as_rows(const Tensor& heads) {
  return heads.as_strided({heads.size(0), heads.size(1) * heads.size(2)}, {heads.stride(0), 1});
}

}  // namespace

std::vector<StoredRows> grouped_qkv_rows(int64_t num_heads, int64_t num_kv_heads,
                                         int64_t head_dim) {
  const int64_t queries = num_heads / num_kv_heads * head_dim, group = queries + 2 * head_dim;
  std::vector<StoredRows> rows;
  const auto add = [&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < num_kv_heads; ++i) rows.push_back({i * group + first, count});
  };
  add(0, queries);
  add(queries, head_dim);
  add(queries + head_dim, head_dim);
  return rows;
}

std::vector<StoredRows> sharded_qkv_rows(int64_t width, int64_t shards) {
  const int64_t part = width / shards;
  std::vector<StoredRows> rows;
  for (const int64_t place : {0, 2, 1}) {
    for (int64_t i = 0; i < shards; ++i) rows.push_back({(3 * i + place) * part, part});
  }
  return rows;
}

AttentionHeads::AttentionHeads(const Tensor& qkv, const AttentionConfig& config)
    : q(qkv.as_strided({qkv.size(0), config.num_heads, config.head_dim},
                       {qkv.stride(0), config.query_width() / config.num_heads, 1})) {
  if (config.shares_cache) return;
  k = heads_of(qkv, config.query_width(), config.num_kv_heads, config.head_dim);
  v = heads_of(qkv, config.first_value(), config.num_kv_heads, config.head_dim);
}

SelfAttention::SelfAttention(const LoadContext& context, const std::string& name,
                             const AttentionConfig& config)
    : config_(config),
      qkv_(load_qkv(context, name, config)),
      output_(load_output(context, name, config)) {
  PL_CHECK(config.value_norm || !config.values_are_keys, "values that are keys have a norm");
  PL_CHECK(config.clip == 0 || !(config.has_gate || config.rotates_first || config.shares_cache),
           "clipped heads have no gates, are normalised first, and have keys of their own");
  if (config.value_norm && !config.shares_cache) {
    unit_weights_ = write_vector(context.backend,
                                 std::vector<float>(static_cast<size_t>(config.head_dim), 1.0f));
  }
  if (config.sinks) sinks_ = load_vector(context, name + ".sinks", config.num_heads);
  if (config.head_gates) {
    gate_origins_ = write_vector(context.backend,
                                 std::vector<float>(static_cast<size_t>(config.num_heads), 0.0f));
  }
  if (config.disentangled) disentangled_.emplace(context, name, *config.disentangled);
  load_norms(context, name);
}

void SelfAttention::load_norms(const LoadContext& context, const std::string& name) {
  const auto load = [&](const std::string& part, int64_t heads, std::vector<Norm>& norms) {
    const std::string whole = name + "." + part;
    switch (config_.qk_norm) {
      case QkNorm::none:
        return;
      case QkNorm::head:
        norms.emplace_back(context, whole, config_.head_dim, config_.norm);
        return;
      case QkNorm::width:
        norms.emplace_back(context, whole, heads * config_.head_dim, config_.norm);
        return;
      case QkNorm::each_head:
        if (config_.joined_norms && context.prepared == nullptr) {
          return load_joined_norms(context, whole, heads, norms);
        }
        for (int64_t head = 0; head < heads; ++head) {
          norms.emplace_back(context, whole + ".norms." + std::to_string(head), config_.head_dim,
                             config_.norm);
        }
        return;
    }
  };
  load(config_.names.q_norm, config_.num_heads, q_norms_);
  if (!config_.shares_cache) load(config_.names.k_norm, config_.num_kv_heads, k_norms_);
}

void SelfAttention::load_joined_norms(const LoadContext& context, const std::string& name,
                                      int64_t heads, std::vector<Norm>& norms) const {
  const auto width = static_cast<size_t>(config_.head_dim);
  const std::vector<float> weights =
      read_elements(context, name + ".weight", {heads, config_.head_dim});
  for (int64_t head = 0; head < heads; ++head) {
    const std::span of_head = std::span(weights).subspan(static_cast<size_t>(head) * width, width);
    norms.emplace_back(
        store_vector(context, name + ".norms." + std::to_string(head) + ".weight", of_head),
        config_.norm);
  }
}

Tensor SelfAttention::norm_input(const Tensor& heads, size_t index) const {
  if (config_.qk_norm == QkNorm::head) return heads;
  if (config_.qk_norm == QkNorm::width) return as_rows(heads);
  const auto head = static_cast<int64_t>(index);
  return heads.as_strided({heads.size(0), heads.size(2)}, {heads.stride(0), 1},
                          head * heads.stride(1));
}

void SelfAttention::normalise_heads(Backend& backend, std::span<const Norm> norms, const Tensor& x,
                                    const Tensor& out) const {
  for (size_t i = 0; i < norms.size(); ++i) {
    norms[i].forward(backend, norm_input(x, i), norm_input(out, i));
  }
}

void SelfAttention::normalise(Backend& backend, const AttentionHeads& from,
                              const AttentionHeads& heads) const {
  normalise_heads(backend, q_norms_, from.q, heads.q);
  normalise_heads(backend, k_norms_, from.k, heads.k);
}

void SelfAttention::clip(Backend& backend, const AttentionHeads& heads) const {
  for (const Tensor& part : {as_rows(heads.q), as_rows(heads.k), as_rows(heads.v)}) {
    backend.clamp(part, config_.clip, part);
  }
}

void SelfAttention::scale_queries(Backend& backend, const PositionInputs& positions,
                                  const Tensor& q) const {
  if (positions.query_factors.empty()) return;
  const Tensor queries = as_rows(q);
  backend.scale(queries, positions.query_factors, queries);
}

void SelfAttention::rotate(Backend& backend, const PositionInputs& positions,
                           const AttentionHeads& heads) const {
  if (positions.rope_table == nullptr) return;
  backend.rope(*positions.rope_table, config_.rope_pairs, heads.q);
  backend.rope(*positions.rope_table, config_.rope_pairs, heads.k);
}

void SelfAttention::place_heads(Backend& backend, const PositionInputs& positions,
                                const AttentionHeads& from, const AttentionHeads& heads) const {
  if (config_.rotates_first || q_norms_.empty()) {
    backend.gradients().copy_rounded(from.q, DType::f32, heads.q);
    backend.gradients().copy_rounded(from.k, DType::f32, heads.k);
  }
  if (!config_.rotates_first) normalise(backend, from, heads);
  rotate(backend, positions, heads);
  if (config_.rotates_first) normalise(backend, heads, heads);
  scale_queries(backend, positions, heads.q);
}

void SelfAttention::place_and_store(Backend& backend, const PositionInputs& positions,
                                    const AttentionHeads& heads, Indices<int64_t> slots,
                                    const KvStore& store) const {
  if (config_.shares_cache) return place_queries(backend, positions, heads.q);
  if (config_.value_norm) {
    const Tensor& made = config_.values_are_keys ? heads.k : heads.v;
    backend.rms_norm(made, unit_weights_->view, config_.norm.eps, heads.v);
  }
  HeadPlacement placement{.rope_table = positions.rope_table, .pairs = config_.rope_pairs};
  if (config_.rotates_first) {
    rotate(backend, positions, heads);
    normalise(backend, heads, heads);
    placement.rope_table = nullptr;
  } else if (config_.clip > 0) {
    normalise(backend, heads, heads);
    clip(backend, heads);
  } else if (config_.qk_norm == QkNorm::head && config_.norm.kind == NormKind::rms) {
    placement.q_norm = q_norms_.front().rms_weights();
    placement.k_norm = k_norms_.front().rms_weights();
  } else {
    normalise(backend, heads, heads);
  }
  backend.place_heads(placement, heads.q, heads.k, heads.v, slots, store);
  scale_queries(backend, positions, heads.q);
}

void SelfAttention::place_queries(Backend& backend, const PositionInputs& positions,
                                  const Tensor& q) const {
  normalise_heads(backend, q_norms_, q, q);
  if (positions.rope_table != nullptr) {
    backend.rope(*positions.rope_table, config_.rope_pairs, q);
  }
  scale_queries(backend, positions, q);
}

AttentionScratch::AttentionScratch(Scratch& scratch, const AttentionConfig& config, int64_t rows)
    : qkv(scratch.take_rows(rows, config.row_width())) {
  const int64_t q_width = config.num_heads * config.head_dim;
  attended = config.has_gate ? scratch.take_rows(rows, q_width) : qkv.slice(1, 0, q_width);
  if (config.sinks) log_sum_exp = scratch.take(DType::f32, {rows, config.num_heads});
  if (config.disentangled) {
    position_terms = scratch.take_rows(rows, config.disentangled->row_width());
  }
}

void SelfAttention::forward(Backend& backend, const Tensor& x, const PositionInputs& positions,
                            const BatchArrays::Group& group, const BlockAdapters& adapters,
                            const KvStore& store, Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const auto& [qkv, attended, log_sum_exp, position_terms] =
      AttentionScratch(scratch, config_, x.size(0));
  const Tensor products = qkv.slice(1, 0, config_.input_width());
  qkv_.forward(backend, x, products);
  adapters.add(backend, BlockProduct::qkv, x, products);
  const AttentionHeads heads(qkv, config_);
  AttentionParams params = config_.params;
  params.position_scores = positions.scores;
  PositionScores own;
  if (disentangled_) {
    own = disentangled_->forward(backend, heads.q, heads.k, position_terms);
    params.position_scores = &own;
  }
  place_and_store(backend, positions, heads, group.slots, store);

  const Tensor read = heads_of(attended, 0, config_.num_heads, config_.head_dim);
  if (sinks_) {
    backend.attention(heads.q, store, group.slices, params, read, &log_sum_exp);
    backend.apply_sinks(log_sum_exp, sinks_->view, read);
  } else {
    backend.attention(heads.q, store, group.slices, params, read);
  }
  if (config_.has_gates()) gate_heads(backend, qkv, attended, attended);
  output_.forward(backend, attended, out);
  adapters.add(backend, BlockProduct::output, attended, out);
}

// The gates of a head stand behind its queries.
Tensor SelfAttention::gates_of(const Tensor& qkv, int64_t head) const {
  return qkv.slice(1, (2 * head + 1) * config_.head_dim, (2 * head + 2) * config_.head_dim);
}

Tensor SelfAttention::outputs_of(const Tensor& rows, int64_t head) const {
  return rows.slice(1, head * config_.head_dim, (head + 1) * config_.head_dim);
}

Tensor SelfAttention::gates_of_heads(const Tensor& qkv) const {
  return qkv.slice(1, config_.input_width() - config_.num_heads, config_.input_width());
}

void SelfAttention::gate_heads(Backend& backend, const Tensor& qkv, const Tensor& read,
                               const Tensor& out) const {
  if (config_.head_gates) {
    if (read.raw() != out.raw()) backend.scale(read, std::array{1.0f}, out);
    return gate_whole_heads(backend, qkv, out);
  }
  for (int64_t head = 0; head < config_.num_heads; ++head) {
    backend.gated_activation(Activation::sigmoid, gates_of(qkv, head), outputs_of(read, head),
                             outputs_of(out, head));
  }
}

// A sink's share is the sigmoid of a difference.
void SelfAttention::gate_whole_heads(Backend& backend, const Tensor& qkv,
                                     const Tensor& read) const {
  backend.apply_sinks(gates_of_heads(qkv), gate_origins_->view,
                      heads_of(read, 0, config_.num_heads, config_.head_dim));
}

void SelfAttention::gate_gradient(Backend& backend, const HeadGateGradient& of) const {
  if (config_.head_gates) return whole_gate_gradient(backend, of);
  for (int64_t head = 0; head < config_.num_heads; ++head) {
    backend.gradients().gated_activation_gradient(Activation::sigmoid,
                                                  {.gate = gates_of(of.qkv, head),
                                                   .up = outputs_of(of.read, head),
                                                   .dout = outputs_of(of.dout, head)},
                                                  gates_of(of.dqkv, head),
                                                  outputs_of(of.dread, head));
  }
}

// With s the sigmoid of a head's gate, dread = s dout, and the gate's is s (1 - s) times the
// product of what attention read with dout.
void SelfAttention::whole_gate_gradient(Backend& backend, const HeadGateGradient& of) const {
  backend.scale(of.dout, std::array{1.0f}, of.dread);
  gate_whole_heads(backend, of.qkv, of.dread);
  const Tensor gates = gates_of_heads(of.qkv), dgates = gates_of_heads(of.dqkv);
  multiply_heads(of.read, of.dout, dgates);
  for (int64_t row = 0; row < gates.size(0); ++row) {
    for (int64_t head = 0; head < config_.num_heads; ++head) {
      const double share = 1.0 / (1.0 + std::exp(-double{gates.row<float>(row)[head]}));
      float& gradient = dgates.row<float>(row)[head];
      gradient = static_cast<float>(share * (1.0 - share) * double{gradient});
    }
  }
}

}  // namespace paceline
