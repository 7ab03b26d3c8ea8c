#include "train/block_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "train/backend_operation.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;
using autodiff::Wanted;

class NormOperation final : public BackendOperation {
 public:
  NormOperation(Backend& backend, const Norm& norm, const NormGradient& gradient, Elements elements)
      : BackendOperation(backend), norm_(norm), gradient_(gradient), elements_(elements) {}

  std::string_view name() const override { return "norm"; }

  Array forward(const Arrays& inputs) const override {
    if (elements_ == Elements::none) return inputs[0].without_elements();
    Array y = new_array(inputs[0], inputs[0].shape());
    norm_.forward(backend(), inputs[0].tensor(), y.writable());
    return y;
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    Array dx = new_array(cotangent, cotangent.shape());
    norm_.gradient(gradients(), untraced(application.inputs[0]), untraced(cotangent), dx.writable(),
                   gradient_);
    return {std::move(dx)};
  }

  bool vjp_reads_output() const override { return false; }

 private:
  const Norm& norm_;
  const NormGradient& gradient_;
  Elements elements_;
};

class SumOperation final : public BackendOperation {
 public:
  SumOperation(Backend& backend, float scale, Elements elements)
      : BackendOperation(backend), scale_(scale), elements_(elements) {}

  std::string_view name() const override { return "add"; }

  Array forward(const Arrays& inputs) const override {
    if (elements_ == Elements::none) return inputs[0].without_elements();
    Array y = new_array(inputs[0], inputs[0].shape());
    const Tensor out = y.writable();
    if (scale_ == 1.0f) {
      backend().add(inputs[0].tensor(), inputs[1].tensor(), out);
    } else {
      backend().scale(inputs[1].tensor(), std::array{scale_}, out);
      backend().add(inputs[0].tensor(), out, out);
    }
    return y;
  }

  Arrays vjp(const Array& cotangent, const Application& /*application*/) const override {
    if (scale_ == 1.0f) return {cotangent, cotangent};
    Array scaled = new_array(cotangent, cotangent.shape());
    backend().scale(untraced(cotangent), std::array{scale_}, scaled.writable());
    return {cotangent, std::move(scaled)};
  }

  bool vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  float scale_;
  Elements elements_;
};

// [rows, heads * head_dim] as [rows, heads, head_dim].
Tensor as_heads(const Tensor& x, const AttentionConfig& config) {
  return x.as_strided({x.size(0), config.num_heads, config.head_dim},
                      {x.stride(0), config.head_dim, 1});
}

// Products round as those of the weights before them do, where keys and values are kept as such.
OperandRounding attention_rounding(const SelfAttention& attention, const SequenceStore& store) {
  const PackedMatrix& weights = attention.qkv().weights().front();
  const bool is_rounded = weights.groups || weights.dtype == DType::bf16;
  return is_rounded && store.store().keys.dtype() == DType::bf16 ? OperandRounding::bfloat16
                                                                 : OperandRounding::none;
}

class AttentionOperation final : public BackendOperation {
 public:
  AttentionOperation(Backend& backend, const SelfAttention& attention,
                     const HeadNormGradients& norm_gradients, const PositionTables& positions,
                     SequenceStore& store)
      : BackendOperation(backend),
        attention_(attention),
        norm_gradients_(norm_gradients),
        positions_(positions),
        store_(store),
        rounding_(attention_rounding(attention, store)) {}

  std::string_view name() const override { return "attention"; }

  Array forward(const Arrays& inputs) const override {
    return forward_and_save(inputs, {true}).output;
  }

  autodiff::Forward forward_and_save(const Arrays& inputs,
                                     const Wanted& /*wanted*/) const override {
    const AttentionConfig& config = attention_.config();
    const int64_t rows = inputs[0].size(0);
    Array rotated = new_array(inputs[0], inputs[0].shape());
    const Tensor work = rotated.writable();
    const AttentionHeads from(inputs[0].tensor(), config), heads(work, config);
    attention_.place_heads(backend(),
                           {.rope_table = positions_.rope ? &positions_.rope->forward : nullptr,
                            .query_factors = positions_.query_factors},
                           from, heads);
    backend().store_kv(heads.k, from.v, store_.slots(), store_.store());
    Array out = new_array(inputs[0], {rows, config.num_heads * config.head_dim});
    const Tensor out_tensor = out.writable();
    Array log_sum_exp = new_array(inputs[0], {rows, config.num_heads});
    const Tensor sums = log_sum_exp.writable();
    backend().attention(heads.q, store_.store(), store_.slices(), config.params,
                        as_heads(out_tensor, config), &sums);
    if (const Tensor* const sinks = attention_.sinks()) {
      backend().apply_sinks(sums, *sinks, as_heads(out_tensor, config));
      add_sinks(*sinks, sums);
    }
    const DType stored = store_.store().keys.dtype();
    gradients().copy_rounded(heads.k, stored, heads.k);
    gradients().copy_rounded(from.v, stored, heads.v);
    if (!config.has_gates()) return {.output = out, .saved = {rotated, log_sum_exp}};
    Array gated = new_array(inputs[0], out.shape());
    attention_.gate_heads(backend(), inputs[0].tensor(), out_tensor, gated.writable());
    return {.output = gated, .saved = {rotated, log_sum_exp, out}};
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const AttentionConfig& config = attention_.config();
    PL_CHECK(application.saved.size() == (config.has_gates() ? 3 : 2),
             "a vjp saves what attention rotated and what gates multiply");
    const AttentionHeads heads(application.saved[0].tensor(), config);
    Array dx = new_array(cotangent, application.saved[0].shape());
    const Tensor d_qkv = dx.writable();
    const AttentionHeads d(d_qkv, config);
    const Array& read = config.has_gates() ? application.saved[2] : application.output;
    const Array dread =
        config.has_gates() ? gate_gradient(application, cotangent, d_qkv) : cotangent;
    gradients().attention_gradient({.q = heads.q,
                                    .k = heads.k,
                                    .v = heads.v,
                                    .out = as_heads(read.tensor(), config),
                                    .log_sum_exp = application.saved[1].tensor(),
                                    .dout = as_heads(untraced(dread), config),
                                    .rounding = rounding_},
                                   store_.sequences(), config.params,
                                   {.dq = d.q, .dk = d.k, .dv = d.v});
    scale_back(d);
    if (!config.rotates_first) rotate(positions_.rope ? &positions_.rope->backward : nullptr, d);
    add_norm_gradients(application, d);
    if (config.rotates_first) rotate(positions_.rope ? &positions_.rope->backward : nullptr, d);
    return {std::move(dx)};
  }

  bool vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const override {
    return !attention_.q_norms().empty() || attention_.config().has_gates();
  }
  bool vjp_reads_output() const override { return !attention_.config().has_gates(); }

 private:
  // Writes the gradient of the gates to d_qkv; returns that of what they multiply.
  Array gate_gradient(const Application& application, const Array& cotangent,
                      const Tensor& d_qkv) const {
    Array dread = new_array(cotangent, cotangent.shape());
    attention_.gate_gradient(backend(), {.qkv = untraced(application.inputs[0]),
                                         .read = application.saved[2].tensor(),
                                         .dout = untraced(cotangent),
                                         .dqkv = d_qkv,
                                         .dread = dread.writable()});
    return dread;
  }

  // Takes the gradients of queries back through their factors.
  void scale_back(const AttentionHeads& d) const {
    const AttentionConfig& config = attention_.config();
    if (positions_.query_factors.empty()) return;
    const Tensor dq =
        d.q.as_strided({d.q.size(0), config.num_heads * config.head_dim}, {d.q.stride(0), 1});
    backend().scale(dq, positions_.query_factors, dq);
  }

  // Of q and k; `table` may be null.
  void rotate(const Tensor* table, const AttentionHeads& heads) const {
    if (table == nullptr) return;
    backend().rope(*table, attention_.config().rope_pairs, heads.q);
    backend().rope(*table, attention_.config().rope_pairs, heads.k);
  }

  // Takes the gradients of q and k back through their norms.
  void add_norm_gradients(const Application& application, const AttentionHeads& d) const {
    if (attention_.q_norms().empty()) return;
    Array rotated;  // what the norms read, where that isn't the input
    Tensor read = application.inputs[0].tensor();
    if (attention_.config().rotates_first) {
      rotated = new_array(application.inputs[0], read.shape());
      const Tensor copy = rotated.writable();
      gradients().copy_rounded(read, DType::f32, copy);
      read = copy;
      rotate(positions_.rope ? &positions_.rope->forward : nullptr,
             AttentionHeads(read, attention_.config()));
    }
    const AttentionHeads x(read, attention_.config());
    norm_gradients(attention_.q_norms(), norm_gradients_.q, x.q, d.q);
    norm_gradients(attention_.k_norms(), norm_gradients_.k, x.k, d.k);
  }

  void norm_gradients(std::span<const Norm> norms, std::span<const NormGradient> to,
                      const Tensor& x, const Tensor& dy) const {
    for (size_t i = 0; i < norms.size(); ++i) {
      const Tensor d = attention_.norm_input(dy, i);
      norms[i].gradient(gradients(), attention_.norm_input(x, i), d, d,
                        to.empty() ? NormGradient{} : to[i]);
    }
  }

  // The sums of all scores, with which the gradient's probabilities are those of the softmax that
  // the sinks are part of. Rows of scores don't depend on each other.
  static void add_sinks(const Tensor& sinks, const Tensor& log_sum_exp) {
    for (int64_t row = 0; row < log_sum_exp.size(0); ++row) {
      float* const sums = log_sum_exp.row<float>(row);
      for (int64_t head = 0; head < log_sum_exp.size(1); ++head) {
        const auto sum = double{sums[head]}, sink = double{sinks.elements<float>()[head]};
        sums[head] =
            static_cast<float>(std::max(sum, sink) + std::log1p(std::exp(-std::abs(sum - sink))));
      }
    }
  }

  const SelfAttention& attention_;
  const HeadNormGradients& norm_gradients_;
  PositionTables positions_;
  SequenceStore& store_;
  OperandRounding rounding_;
};

}  // namespace

Array apply_norm(Backend& backend, const Norm& norm, const NormGradient& gradient, const Array& x,
                 Elements elements) {
  return autodiff::apply_new<NormOperation>({x}, backend, norm, gradient, elements);
}

Array apply_sum(Backend& backend, const Array& x, const Array& y, float scale, Elements elements) {
  return autodiff::apply_new<SumOperation>({x, y}, backend, scale, elements);
}

Array apply_attention(Backend& backend, const SelfAttention& attention,
                      const HeadNormGradients& norm_gradients, const PositionTables& positions,
                      SequenceStore& store, const Array& qkv) {
  return autodiff::apply_new<AttentionOperation>({qkv}, backend, attention, norm_gradients,
                                                 positions, store);
}

}  // namespace paceline
