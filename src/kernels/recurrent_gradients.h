// RecurrentGradientOps is every operation of a backward pass of recurrent layers, on the device of
// the Backend that returns it.
#pragma once

#include <span>

#include "kernels/gradients.h"
#include "kernels/recurrent.h"

namespace paceline {

struct DeltaGradientInputs {
  DeltaInputs forward;
  Tensor dout;  // [rows, value_heads, value_dim]
};

struct DeltaGradients {
  Tensor dq, dk;      // [rows, key_heads, key_dim]
  Tensor dv;          // [rows, value_heads, value_dim]
  Tensor dlog_decay;  // [rows, value_heads]
  Tensor dbeta;       // [rows, value_heads]
};

struct ScanGradientInputs {
  ScanInputs forward;
  Tensor dout;  // [rows, channels]
};

struct ScanGradients {
  Tensor dx;      // [rows, channels]
  Tensor dsteps;  // [rows, channels]
  Tensor db, dc;  // [rows, state_size]
  // [state_size, channels]: to it the gradient of the rates' logarithms is added, a sequence's sum
  // after that of the one before. Null: it isn't wanted.
  const Tensor* dlog_rates = nullptr;
};

struct DecayGatesInputs {
  Tensor x;            // [rows, heads]
  Tensor bias, rates;  // [heads]
  GateRange range;
  Tensor dout;  // [rows, heads]
};

// The rules of GradientOps hold. Operations are over whole sequences, from position 0 and a state
// of zeros on, which see nothing of each other; sequences are ascending. Gradients of rows outside
// all sequences are not written.
class RecurrentGradientOps {
 public:
  virtual ~RecurrentGradientOps() = default;

  // Of RecurrentOps::short_convolution: dx[p] = sum over j of taps[taps - 1 - j] * dout[p + j] in
  // ascending order, up to the sequence's end.
  //                                       taps [taps, channels], dout, dx [rows, channels]
  void short_convolution_gradient(const ConvolutionShape& shape, const Tensor& taps,
                                  const Tensor& dout, std::span<const SequenceRows> sequences,
                                  const Tensor& dx);

  // Of RecurrentOps::decay_gates: dx = -dout * rates / (1 + exp(-x - bias)), 0 where the gate is
  // bounded; in place of x or dout.       dx [rows, heads]
  void decay_gates_gradient(const DecayGatesInputs& in, const Tensor& dx);

  // Of RecurrentOps::delta_rule. With S the state at a chunk's start, dS' the gradient of the one
  // at its end, P and A the factors of u_j in out_i and of -u_j in u_i / beta_i, going back:
  //   du_j = exp(G_n - G_j) dS'^T k_j + sum over i of P_ij dout_i - sum over i of A_ij dv_i
  //   dv_j = beta_j du_j
  //   dS = exp(G_n) dS' + sum over i of exp(G_i) (q_i dout_i^T - k_i dv_i^T)
  // and without corrections the same without A and k_i dv_i^T; a skip's share of dout is added to
  // dv. Value heads that share a key head are added up in dq and dk in ascending order, eight at a
  // time and then these sums.
  void delta_rule_gradient(const DeltaShape& shape, const DeltaGradientInputs& in,
                           std::span<const SequenceRows> sequences, const DeltaGradients& out);

  // Of RecurrentOps::selective_scan, from the last row to the first. With dS the gradient of the
  // state behind a row, to which dout c was added, a = exp(-rates * step) and S the state before
  // it:
  //   dinput = sum of dS b,  dx = step dinput + skip dout
  //   w = -rates a S dS,     dstep = x dinput + sum of w,  dlog_rates = sum over rows of step w
  //   db = sum over channels of step x dS,  dc = that of dout (a S + step x b)
  // and a dS is that of the row before. Channels are added up in parts at fixed places, in
  // ascending order.
  void selective_scan_gradient(const ScanShape& shape, const ScanGradientInputs& in,
                               std::span<const SequenceRows> sequences, const ScanGradients& out);

 private:
  virtual void do_short_convolution_gradient(const ConvolutionShape& shape, const Tensor& taps,
                                             const Tensor& dout,
                                             std::span<const SequenceRows> sequences,
                                             const Tensor& dx) = 0;
  virtual void do_decay_gates_gradient(const DecayGatesInputs& in, const Tensor& dx) = 0;
  virtual void do_delta_rule_gradient(const DeltaShape& shape, const DeltaGradientInputs& in,
                                      std::span<const SequenceRows> sequences,
                                      const DeltaGradients& out) = 0;
  virtual void do_selective_scan_gradient(const ScanShape& shape, const ScanGradientInputs& in,
                                          std::span<const SequenceRows> sequences,
                                          const ScanGradients& out) = 0;
};

}  // namespace paceline
