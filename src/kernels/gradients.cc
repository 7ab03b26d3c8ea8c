#include "kernels/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "kernels/backend.h"
#include "kernels/shape_check.h"

namespace paceline {

GradientOps& Backend::gradients() {
  PL_CHECK(false, fmt::format("{} has no gradients", name()));
  __builtin_unreachable();
}

namespace {

void check_input_gradient(const char* operation, const Tensor& dy, const PackedMatrix& w,
                          const Tensor& dx) {
  ShapeCheck check(operation);
  check.dimension("w", "n", w.n);
  check.dimension("w", "k", w.k);
  check.tensor("dy", dy, {"rows", "n"});
  check.tensor("dx", dx, {"rows", "k"});
}

void check_weight_gradient(const char* operation, const PackedMatrix& w,
                           const WeightGradient& of_weights, const Tensor& dx) {
  ShapeCheck check(operation);
  check.dimension("w", "n", w.n);
  check.tensor("dx", dx, {"rows", "k"});
  check.tensor("x", of_weights.x, {"rows", "k"});
  check.tensor("dw", of_weights.dw, {"n", "k"});
}

}  // namespace

void GradientOps::matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx) {
  check_input_gradient("matmul_input_gradient", dy, w, dx);
  if (!dx.empty()) do_matmul_input_gradient(dy, w, Former::replaced, dx);
}

void GradientOps::matmul_gradients(const Tensor& dy, const PackedMatrix& w,
                                   const WeightGradient& of_weights, const Tensor& dx) {
  check_input_gradient("matmul_gradients", dy, w, dx);
  check_weight_gradient("matmul_gradients", w, of_weights, dx);
  if (!dx.empty()) do_matmul_gradients(dy, w, of_weights, dx);
}

void GradientOps::do_matmul_gradients(const Tensor& dy, const PackedMatrix& w,
                                      const WeightGradient& of_weights, const Tensor& dx) {
  do_matmul_input_gradient(dy, w, Former::replaced, dx);
  do_matmul_weight_gradient(dy, of_weights.x, of_weights.rounding, of_weights.dw);
}

void GradientOps::add_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w,
                                            const Tensor& dx) {
  check_input_gradient("add_matmul_input_gradient", dy, w, dx);
  if (!dx.empty()) do_matmul_input_gradient(dy, w, Former::added_to, dx);
}

void GradientOps::matmul_weight_gradient(const Tensor& dy, const Tensor& x,
                                         OperandRounding rounding, const Tensor& dw) {
  ShapeCheck check("matmul_weight_gradient");
  check.tensor("dy", dy, {"rows", "n"});
  check.tensor("x", x, {"rows", "k"});
  check.tensor("dw", dw, {"n", "k"});
  if (!dw.empty() && !dy.empty()) do_matmul_weight_gradient(dy, x, rounding, dw);
}

void GradientOps::bias_gradient(const Tensor& dy, const Tensor& dbias) {
  ShapeCheck check("bias_gradient");
  check.tensor("dy", dy, {"rows", "n"});
  check.tensor("dbias", dbias, {"n"});
  if (!dy.empty()) do_bias_gradient(dy, dbias);
}

void GradientOps::attention_gradient(const AttentionGradientInputs& in,
                                     std::span<const SequenceRows> sequences,
                                     const AttentionParams& params, const AttentionGradients& out) {
  ShapeCheck check("attention_gradient");
  for (const auto& [name, tensor] :
       {std::pair{"q", &in.q}, {"out", &in.out}, {"dout", &in.dout}, {"dq", &out.dq}}) {
    check.tensor(name, *tensor, {"rows", "heads", "head_dim"});
  }
  for (const auto& [name, tensor] :
       {std::pair{"k", &in.k}, {"v", &in.v}, {"dk", &out.dk}, {"dv", &out.dv}}) {
    check.tensor(name, *tensor, {"rows", "kv_heads", "head_dim"});
  }
  check.tensor("log_sum_exp", in.log_sum_exp, {"rows", "heads"});
  PL_CHECK(check.size("kv_heads") > 0 && check.size("heads") % check.size("kv_heads") == 0,
           fmt::format("attention_gradient: {} heads on {} kv heads", check.size("heads"),
                       check.size("kv_heads")));
  PL_CHECK(params.window >= 0 && params.soft_cap >= 0.0f,
           "attention_gradient: negative window or cap");
  int64_t end = 0;
  for (const SequenceRows& sequence : sequences) {
    PL_CHECK(sequence.first_row >= end && sequence.num_rows >= 0 &&
                 sequence.num_rows <= check.size("rows") - sequence.first_row,
             fmt::format("attention_gradient: sequence [{}, +{}) of {} rows, after row {}",
                         sequence.first_row, sequence.num_rows, check.size("rows"), end));
    end = sequence.first_row + sequence.num_rows;
  }
  if (!in.q.empty()) do_attention_gradient(in, sequences, params, out);
}

namespace {

void check_norm_gradient(ShapeCheck& check, const NormGradientInputs& in, const Tensor& dx) {
  for (const auto& [name, tensor] : {std::pair{"x", &in.x}, {"dy", &in.dy}, {"dx", &dx}}) {
    if (in.x.rank() == 3) {
      check.tensor(name, *tensor, {"rows", "heads", "width"});
    } else {
      check.tensor(name, *tensor, {"rows", "width"});
    }
  }
  check.tensor("weight", in.weight, {"width"});
}

}  // namespace

void GradientOps::layer_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                                      const Tensor* dweight, const Tensor* dbias) {
  ShapeCheck check("layer_norm_gradient");
  check_norm_gradient(check, in, dx);
  if (dweight != nullptr) check.tensor("dweight", *dweight, {"width"});
  if (dbias != nullptr) check.tensor("dbias", *dbias, {"width"});
  if (!dx.empty()) do_layer_norm_gradient(in, eps, dx, dweight, dbias);
}

void GradientOps::activation_gradient(Activation kind, const Tensor& x, const Tensor& dout,
                                      const Tensor& dx) {
  ShapeCheck check("activation_gradient");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("dout", dout, {"rows", "width"});
  check.tensor("dx", dx, {"rows", "width"});
  if (!dx.empty()) do_activation_gradient(kind, x, dout, dx);
}

void GradientOps::rms_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                                    const Tensor* dweight) {
  ShapeCheck check("rms_norm_gradient");
  check_norm_gradient(check, in, dx);
  if (dweight != nullptr) check.tensor("dweight", *dweight, {"width"});
  if (!dx.empty()) do_rms_norm_gradient(in, eps, dx, dweight);
}

void GradientOps::gated_activation_gradient(Activation kind, const GatedGradientInputs& in,
                                            const Tensor& dgate, const Tensor& dup) {
  ShapeCheck check("gated_activation_gradient");
  for (const auto& [name, tensor] : {std::pair{"gate", &in.gate},
                                     {"up", &in.up},
                                     {"dout", &in.dout},
                                     {"dgate", &dgate},
                                     {"dup", &dup}}) {
    check.tensor(name, *tensor, {"rows", "width"});
  }
  if (!dgate.empty()) do_gated_activation_gradient(kind, in, dgate, dup);
}

void GradientOps::gated_matmul_gradients(Activation kind, const GatedGradientInputs& in,
                                         const PackedMatrix& w, const WeightGradient* of_weights,
                                         const Tensor& dx) {
  ShapeCheck check("gated_matmul_gradients");
  check.dimension("w", "n / 2", w.n / 2);
  check.dimension("w", "k", w.k);
  check.tensor("gate", in.gate, {"rows", "n / 2"});
  check.tensor("up", in.up, {"rows", "n / 2"});
  check.tensor("dout", in.dout, {"rows", "n / 2"});
  check.tensor("dx", dx, {"rows", "k"});
  if (of_weights != nullptr) {
    check_weight_gradient("gated_matmul_gradients", w, *of_weights, dx);
  }
  if (!dx.empty()) do_gated_matmul_gradients(kind, in, w, of_weights, dx);
}

void GradientOps::do_gated_matmul_gradients(Activation kind, const GatedGradientInputs& in,
                                            const PackedMatrix& w, const WeightGradient* of_weights,
                                            const Tensor& dx) {
  const int64_t rows = dx.size(0), width = w.n / 2;
  std::vector<float> elements(static_cast<size_t>(rows * w.n));
  const Tensor dy(elements.data(), DType::f32, {rows, w.n});
  do_gated_activation_gradient(kind, in, dy.slice(1, 0, width), dy.slice(1, width, w.n));
  do_matmul_input_gradient(dy, w, Former::replaced, dx);
  if (of_weights == nullptr) return;
  do_matmul_weight_gradient(dy, of_weights->x, of_weights->rounding, of_weights->dw);
}

void GradientOps::soft_cap_gradient(const Tensor& x, float cap, const Tensor& dy,
                                    const Tensor& dx) {
  ShapeCheck check("soft_cap_gradient");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("dy", dy, {"rows", "width"});
  check.tensor("dx", dx, {"rows", "width"});
  PL_CHECK(cap > 0.0f, "soft_cap_gradient: the cap is positive");
  if (!dx.empty()) do_soft_cap_gradient(x, cap, dy, dx);
}

void GradientOps::embedding_gradient(std::span<const int32_t> ids, float scale, const Tensor& dout,
                                     const Tensor& dtable) {
  ShapeCheck check("embedding_gradient");
  check.dimension("ids", "rows", std::ssize(ids));
  check.tensor("dout", dout, {"rows", "hidden"});
  check.tensor("dtable", dtable, {"vocab", "hidden"});
  for (const int32_t id : ids) {
    PL_CHECK(id >= 0 && id < dtable.size(0),
             fmt::format("embedding_gradient: id {} of {}", id, dtable.size(0)));
  }
  if (!dout.empty()) do_embedding_gradient(ids, scale, dout, dtable);
}

void GradientOps::cross_entropy_gradient(std::span<const int32_t> targets,
                                         std::span<const float> weights, const Tensor& logits,
                                         std::span<float> losses) {
  ShapeCheck check("cross_entropy_gradient");
  check.tensor("logits", logits, {"rows", "vocab"});
  check.dimension("targets", "rows", std::ssize(targets));
  check.dimension("weights", "rows", std::ssize(weights));
  check.dimension("losses", "rows", std::ssize(losses));
  PL_CHECK(check.size("vocab") > 0, "cross_entropy_gradient: rows are not empty");
  for (size_t r = 0; r < targets.size(); ++r) {
    PL_CHECK(weights[r] == 0.0f || (targets[r] >= 0 && targets[r] < logits.size(1)),
             fmt::format("cross_entropy_gradient: target {} of {}", targets[r], logits.size(1)));
  }
  if (!logits.empty()) do_cross_entropy_gradient(targets, weights, logits, losses);
}

void GradientOps::copy_rounded(const Tensor& x, DType dtype, const Tensor& out) {
  ShapeCheck check("copy_rounded");
  for (const auto& [name, tensor] : {std::pair{"x", &x}, {"out", &out}}) {
    if (x.rank() == 3) {
      check.tensor(name, *tensor, {"rows", "heads", "width"});
    } else {
      check.tensor(name, *tensor, {"rows", "width"});
    }
  }
  PL_CHECK(is_float(dtype), "copy_rounded: elements are rounded to a type of floats");
  if (!out.empty()) do_copy_rounded(x, dtype, out);
}

void GradientOps::drop_elements(const DroppedElements& dropped, const Tensor& x,
                                const Tensor& out) {
  ShapeCheck check("drop_elements");
  check.tensor("x", x, {"rows", "width"});
  check.tensor("out", out, {"rows", "width"});
  if (!dropped.rows.empty()) check.dimension("rows", "rows", std::ssize(dropped.rows));
  if (!out.empty()) do_drop_elements(dropped, x, out);
}

void GradientOps::do_drop_elements(const DroppedElements& dropped, const Tensor& x,
                                   const Tensor& out) {
  constexpr int64_t kDraws = 4;  // of a counter
  const int64_t width = x.size(1);
  const auto counters_of_row = static_cast<uint64_t>((width + kDraws - 1) / kDraws);
  for (int64_t row = 0; row < x.size(0); ++row) {
    const float* const from = x.row<float>(row);
    float* const to = out.row<float>(row);
    const int64_t drawn_row =
        dropped.rows.empty() ? row : int64_t{dropped.rows[static_cast<size_t>(row)]};
    uint64_t counter = static_cast<uint64_t>(dropped.first_row + drawn_row) * counters_of_row;
    for (int64_t begin = 0; begin < width; begin += kDraws) {
      const auto draws = philox4x32(dropped.seed, counter++, dropped.stream);
      for (int64_t i = begin; i < std::min(width, begin + kDraws); ++i) {
        const bool is_dropped = draws[static_cast<size_t>(i - begin)] < dropped.threshold;
        to[i] = is_dropped ? 0.0f : from[i] * dropped.factor;
      }
    }
  }
}

}  // namespace paceline
