#include "train/block_operations.h"

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
  NormOperation(Backend& backend, const RmsNorm& norm, const NormGradient& gradient)
      : BackendOperation(backend), norm_(norm), gradient_(gradient) {}

  std::string_view name() const override { return "rms_norm"; }

  Array forward(const Arrays& inputs) const override {
    Array y = new_array(inputs[0], inputs[0].shape());
    norm_.forward(backend(), inputs[0].tensor(), y.writable());
    return y;
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    Array dx = new_array(cotangent, cotangent.shape());
    gradients().rms_norm_gradient(
        {.x = untraced(application.inputs[0]), .weight = norm_.weight(), .dy = untraced(cotangent)},
        norm_.eps(), dx.writable(), gradient_ ? &*gradient_ : nullptr);
    return {std::move(dx)};
  }

  bool vjp_reads_output() const override { return false; }

 private:
  const RmsNorm& norm_;
  const NormGradient& gradient_;
};

class GatedOperation final : public BackendOperation {
 public:
  GatedOperation(Backend& backend, Activation kind) : BackendOperation(backend), kind_(kind) {}

  std::string_view name() const override { return "gated_activation"; }

  Array forward(const Arrays& inputs) const override {
    const Tensor& gate_up = inputs[0].tensor();
    const int64_t width = gate_up.size(1) / 2;
    Array y = new_array(inputs[0], {gate_up.size(0), width});
    backend().gated_activation(kind_, gate_up.slice(1, 0, width),
                               gate_up.slice(1, width, 2 * width), y.writable());
    return y;
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const Tensor& gate_up = untraced(application.inputs[0]);
    const int64_t width = gate_up.size(1) / 2;
    Array dx = new_array(cotangent, gate_up.shape());
    const Tensor out = dx.writable();
    gradients().gated_activation_gradient(kind_,
                                          {.gate = gate_up.slice(1, 0, width),
                                           .up = gate_up.slice(1, width, 2 * width),
                                           .dout = untraced(cotangent)},
                                          out.slice(1, 0, width), out.slice(1, width, 2 * width));
    return {std::move(dx)};
  }

  bool vjp_reads_output() const override { return false; }

 private:
  Activation kind_;
};

class SumOperation final : public BackendOperation {
 public:
  using BackendOperation::BackendOperation;

  std::string_view name() const override { return "add"; }

  Array forward(const Arrays& inputs) const override {
    Array y = new_array(inputs[0], inputs[0].shape());
    backend().add(inputs[0].tensor(), inputs[1].tensor(), y.writable());
    return y;
  }

  Arrays vjp(const Array& cotangent, const Application& /*application*/) const override {
    return {cotangent, cotangent};
  }

  bool vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const override { return false; }
  bool vjp_reads_output() const override { return false; }
};

// The heads of q, k and v side by side in a row.
struct Heads {
  Tensor q;     // [rows, heads, head_dim]
  Tensor k, v;  // [rows, kv_heads, head_dim]

  Heads(const Tensor& qkv, const AttentionConfig& config)
      : q(heads_of(qkv, 0, config.num_heads, config.head_dim)),
        k(heads_of(qkv, config.num_heads, config.num_kv_heads, config.head_dim)),
        v(heads_of(qkv, config.num_heads + config.num_kv_heads, config.num_kv_heads,
                   config.head_dim)) {}

  static Tensor heads_of(const Tensor& x, int64_t first, int64_t count, int64_t head_dim) {
    return x.as_strided({x.size(0), count, head_dim}, {x.stride(0), head_dim, 1}, first * head_dim);
  }
};

class AttentionOperation final : public BackendOperation {
 public:
  AttentionOperation(Backend& backend, const SelfAttention& attention,
                     const HeadNormGradients& norm_gradients, const RotaryTables& tables,
                     SequenceStore& store)
      : BackendOperation(backend),
        attention_(attention),
        norm_gradients_(norm_gradients),
        tables_(tables),
        store_(store) {}

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
    copy_elements(inputs[0].tensor(), work);
    const Heads heads(work, config);
    if (const RmsNorm* const norm = attention_.q_norm()) {
      norm->forward(backend(), heads.q, heads.q);
      attention_.k_norm()->forward(backend(), heads.k, heads.k);
    }
    backend().rope(tables_.forward, heads.q);
    backend().rope(tables_.forward, heads.k);
    backend().store_kv(heads.k, heads.v, store_.slots(), store_.store());
    Array out = new_array(inputs[0], {rows, config.num_heads * config.head_dim});
    const Tensor out_tensor = out.writable();
    Array log_sum_exp = new_array(inputs[0], {rows, config.num_heads});
    const Tensor sums = log_sum_exp.writable();
    backend().attention(heads.q, store_.store(), store_.slices(), config.params,
                        Heads::heads_of(out_tensor, 0, config.num_heads, config.head_dim), &sums);
    round_as_stored(heads.k);
    round_as_stored(heads.v);
    return {.output = out, .saved = {rotated, log_sum_exp}};
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    const AttentionConfig& config = attention_.config();
    PL_CHECK(application.saved.size() == 2, "a vjp saves what attention rotated");
    const Heads heads(application.saved[0].tensor(), config);
    const auto heads_of = [&config](const Tensor& x) {
      return Heads::heads_of(x, 0, config.num_heads, config.head_dim);
    };
    Array dx = new_array(cotangent, application.saved[0].shape());
    const Tensor d_qkv = dx.writable();
    const Heads d(d_qkv, config);
    gradients().attention_gradient({.q = heads.q,
                                    .k = heads.k,
                                    .v = heads.v,
                                    .out = heads_of(application.output.tensor()),
                                    .log_sum_exp = application.saved[1].tensor(),
                                    .dout = heads_of(untraced(cotangent))},
                                   store_.sequences(), config.params,
                                   {.dq = d.q, .dk = d.k, .dv = d.v});
    backend().rope(tables_.backward, d.q);
    backend().rope(tables_.backward, d.k);
    if (attention_.q_norm() != nullptr) {
      const Heads x(application.inputs[0].tensor(), config);
      norm_gradient(*attention_.q_norm(), norm_gradients_.q, x.q, d.q);
      norm_gradient(*attention_.k_norm(), norm_gradients_.k, x.k, d.k);
    }
    return {std::move(dx)};
  }

  bool vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const override {
    return attention_.q_norm() != nullptr;
  }

 private:
  void norm_gradient(const RmsNorm& norm, const NormGradient& gradient, const Tensor& x,
                     const Tensor& dy) const {
    gradients().rms_norm_gradient({.x = x, .weight = norm.weight(), .dy = dy}, norm.eps(), dy,
                                  gradient ? &*gradient : nullptr);
  }

  // To the values that attention read from the store.
  void round_as_stored(const Tensor& x) const {
    const DType dtype = store_.store().keys.dtype();
    if (dtype == DType::f32) return;
    OwnedTensor stored = allocate_tensor(backend().memory(), dtype, x.shape());
    copy_elements(x, stored.view);
    copy_elements(stored.view, x);
  }

  const SelfAttention& attention_;
  const HeadNormGradients& norm_gradients_;
  const RotaryTables& tables_;
  SequenceStore& store_;
};

}  // namespace

Array apply_norm(Backend& backend, const RmsNorm& norm, const NormGradient& gradient,
                 const Array& x) {
  return autodiff::apply_new<NormOperation>({x}, backend, norm, gradient);
}

Array apply_gated_activation(Backend& backend, Activation kind, const Array& gate_up) {
  return autodiff::apply_new<GatedOperation>({gate_up}, backend, kind);
}

Array apply_sum(Backend& backend, const Array& x, const Array& y) {
  return autodiff::apply_new<SumOperation>({x, y}, backend);
}

Array apply_attention(Backend& backend, const SelfAttention& attention,
                      const HeadNormGradients& norm_gradients, const RotaryTables& tables,
                      SequenceStore& store, const Array& qkv) {
  return autodiff::apply_new<AttentionOperation>({qkv}, backend, attention, norm_gradients, tables,
                                                 store);
}

}  // namespace paceline
