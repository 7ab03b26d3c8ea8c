#include "kernels/gradients.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/shape_check.h"

namespace paceline {

GradientOps& Backend::gradients() {
  PL_CHECK(false, fmt::format("{} has no gradients", name()));
  __builtin_unreachable();
}

void GradientOps::matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx) {
  ShapeCheck check("matmul_input_gradient");
  check.dimension("w", "n", w.n);
  check.dimension("w", "k", w.k);
  check.tensor("dy", dy, {"rows", "n"});
  check.tensor("dx", dx, {"rows", "k"});
  if (!dx.empty()) do_matmul_input_gradient(dy, w, dx);
}

void GradientOps::matmul_weight_gradient(const Tensor& dy, const Tensor& x,
                                         OperandRounding rounding, const Tensor& dw) {
  ShapeCheck check("matmul_weight_gradient");
  check.tensor("dy", dy, {"rows", "n"});
  check.tensor("x", x, {"rows", "k"});
  check.tensor("dw", dw, {"n", "k"});
  if (!dw.empty() && !dy.empty()) do_matmul_weight_gradient(dy, x, rounding, dw);
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

}  // namespace paceline
