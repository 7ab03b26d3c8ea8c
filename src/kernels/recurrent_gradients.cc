#include "kernels/recurrent_gradients.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/error.h"
#include "kernels/shape_check.h"

namespace paceline {
namespace {

void check_sequences(std::string_view operation, std::span<const SequenceRows> sequences,
                     int64_t rows) {
  int64_t end = 0;
  for (const SequenceRows& sequence : sequences) {
    PL_CHECK(sequence.first_row >= end && sequence.num_rows >= 0 &&
                 sequence.num_rows <= rows - sequence.first_row,
             fmt::format("{}: sequence [{}, +{}) of {} rows, after row {}", operation,
                         sequence.first_row, sequence.num_rows, rows, end));
    end = sequence.first_row + sequence.num_rows;
  }
}

}  // namespace

void RecurrentGradientOps::short_convolution_gradient(const ConvolutionShape& shape,
                                                      const Tensor& taps, const Tensor& dout,
                                                      std::span<const SequenceRows> sequences,
                                                      const Tensor& dx) {
  ShapeCheck check("short_convolution_gradient");
  check.dimension("shape", "channels", shape.channels);
  check.dimension("shape", "taps", shape.taps);
  check.tensor("taps", taps, {"taps", "channels"});
  check.tensor("dout", dout, {"rows", "channels"});
  check.tensor("dx", dx, {"rows", "channels"});
  PL_CHECK(shape.taps > 1 && dout.elements<float>() != dx.elements<float>(),
           "short_convolution_gradient: there are several taps, and it isn't in place");
  check_sequences("short_convolution_gradient", sequences, check.size("rows"));
  if (!dx.empty()) do_short_convolution_gradient(shape, taps, dout, sequences, dx);
}

void RecurrentGradientOps::decay_gates_gradient(const DecayGatesInputs& in, const Tensor& dx) {
  ShapeCheck check("decay_gates_gradient");
  for (const auto& [name, tensor] : {std::pair{"x", &in.x}, {"dout", &in.dout}, {"dx", &dx}}) {
    check.tensor(name, *tensor, {"rows", "heads"});
  }
  check.tensor("bias", in.bias, {"heads"});
  check.tensor("rates", in.rates, {"heads"});
  PL_CHECK(in.range.low >= 0.0f && in.range.low <= in.range.high,
           "decay_gates_gradient: the range of gates isn't one");
  if (!dx.empty()) do_decay_gates_gradient(in, dx);
}

void RecurrentGradientOps::delta_rule_gradient(const DeltaShape& shape,
                                               const DeltaGradientInputs& in,
                                               std::span<const SequenceRows> sequences,
                                               const DeltaGradients& out) {
  PL_CHECK(!shape.channel_decay, "delta_rule_gradient: a head has one decay");
  ShapeCheck check("delta_rule_gradient");
  check.dimension("shape", "key_heads", shape.key_heads);
  check.dimension("shape", "value_heads", shape.value_heads);
  check.dimension("shape", "key_dim", shape.key_dim);
  check.dimension("shape", "value_dim", shape.value_dim);
  for (const auto& [name, tensor] :
       {std::pair{"q", &in.forward.q}, {"k", &in.forward.k}, {"dq", &out.dq}, {"dk", &out.dk}}) {
    check.tensor(name, *tensor, {"rows", "key_heads", "key_dim"});
  }
  for (const auto& [name, tensor] :
       {std::pair{"v", &in.forward.v}, {"dout", &in.dout}, {"dv", &out.dv}}) {
    check.tensor(name, *tensor, {"rows", "value_heads", "value_dim"});
  }
  for (const auto& [name, tensor] : {std::pair{"log_decay", &in.forward.log_decay},
                                     {"beta", &in.forward.beta},
                                     {"dlog_decay", &out.dlog_decay},
                                     {"dbeta", &out.dbeta}}) {
    check.tensor(name, *tensor, {"rows", "value_heads"});
  }
  if (in.forward.skip != nullptr) check.tensor("skip", *in.forward.skip, {"value_heads"});
  PL_CHECK(shape.value_heads % shape.key_heads == 0,
           "delta_rule_gradient: key heads serve value heads alike");
  check_sequences("delta_rule_gradient", sequences, check.size("rows"));
  if (!in.dout.empty()) do_delta_rule_gradient(shape, in, sequences, out);
}

void RecurrentGradientOps::selective_scan_gradient(const ScanShape& shape,
                                                   const ScanGradientInputs& in,
                                                   std::span<const SequenceRows> sequences,
                                                   const ScanGradients& out) {
  ShapeCheck check("selective_scan_gradient");
  check.dimension("shape", "channels", shape.channels);
  check.dimension("shape", "state_size", shape.state_size);
  for (const auto& [name, tensor] : {std::pair{"x", &in.forward.x},
                                     {"steps", &in.forward.steps},
                                     {"dout", &in.dout},
                                     {"dx", &out.dx},
                                     {"dsteps", &out.dsteps}}) {
    check.tensor(name, *tensor, {"rows", "channels"});
  }
  for (const auto& [name, tensor] :
       {std::pair{"b", &in.forward.b}, {"c", &in.forward.c}, {"db", &out.db}, {"dc", &out.dc}}) {
    check.tensor(name, *tensor, {"rows", "state_size"});
  }
  check.tensor("rates", in.forward.rates, {"state_size", "channels"});
  check.tensor("skip", in.forward.skip, {"channels"});
  if (out.dlog_rates != nullptr) {
    check.tensor("dlog_rates", *out.dlog_rates, {"state_size", "channels"});
  }
  check_sequences("selective_scan_gradient", sequences, check.size("rows"));
  if (!in.dout.empty()) do_selective_scan_gradient(shape, in, sequences, out);
}

}  // namespace paceline
