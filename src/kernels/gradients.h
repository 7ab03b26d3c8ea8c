// GradientOps is every operation of a backward pass, on the device of the Backend that returns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/operands.h"
#include "tensor/tensor.h"

namespace paceline {

// Whether the operands of products are rounded first; in attention, whether they may be.
enum class OperandRounding : uint8_t { none, bfloat16 };

// The rows of a segment of a sum over rows.
constexpr int64_t kGradientRows = 256;

// Rows [first_row, first_row + num_rows) of a batch are a sequence, from position 0 on.
struct SequenceRows {
  int64_t first_row = 0;
  int64_t num_rows = 0;
};

// What a pass of attention read and made, and the gradient of what it made.
struct AttentionGradientInputs {
  Tensor q;            // [rows, heads, head_dim]
  Tensor k, v;         // [rows, kv_heads, head_dim], with the values that were stored
  Tensor out;          // [rows, heads, head_dim]
  Tensor log_sum_exp;  // [rows, heads]
  Tensor dout;         // [rows, heads, head_dim]
  // bfloat16: v, dout, weights and gradients of scores may be rounded; queries and keys only where
  // they are multiplied by those gradients, and keys that were stored in bfloat16 stay as they are.
  OperandRounding rounding = OperandRounding::none;
};

struct AttentionGradients {
  Tensor dq;      // [rows, heads, head_dim]
  Tensor dk, dv;  // [rows, kv_heads, head_dim]
};

struct NormGradientInputs {
  Tensor x;       // [..., width] (rank 2 or 3)
  Tensor weight;  // [width]
  Tensor dy;      // like x
};

// dw += dy^T * x.
struct WeightGradient {
  Tensor x;  // [rows, k]
  OperandRounding rounding = OperandRounding::none;
  Tensor dw;  // [n, k]
};

// Element (r, i) is dropped where its 32 bits are below `threshold`: number i % 4 of the draw of
// philox4x32(seed, row * ceil(width / 4) + i / 4, stream), whose row is first_row + rows[r], or
// first_row + r without rows. The others are multiplied by `factor`.
struct DroppedElements {
  uint64_t threshold = 0;
  float factor = 1.0f;
  uint64_t seed = 0;
  uint64_t stream = 0;
  int64_t first_row = 0;
  std::span<const int32_t> rows{};
};

struct GatedGradientInputs {
  Tensor gate, up;  // [rows, width]
  Tensor dout;      // [rows, width]
};

// Gradients are of one scalar, the loss: dy has the shape of y and holds the loss's derivatives by
// y. The rules of Backend hold: shapes are checked in the front door, gradients are float32, and
// every output element is a fixed sequence of floating-point operations, whatever the number of
// threads. Where an operation adds to a gradient of weights, rows are cut into segments of
// kGradientRows, counted from the call's first row: each is summed from zero in ascending order,
// and the sums are added in ascending order. With operands in bfloat16, sums go on from the
// gradient that is there instead. So one call with several segments and several calls with one each
// give the same bits.
class GradientOps {
 public:
  virtual ~GradientOps() = default;

  // dx = dy * w; dy is rounded to bfloat16 first when w is bfloat16 or quantised. Quantised weights
  // count as their values in bfloat16.
  //                                       dy [rows, n], w [n, k], dx [rows, k]
  void matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx);

  // dx += dy * w, to the same precision. A sum over more than kSegmentLength columns of dy is added
  // segment by segment.
  void add_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx);

  // dw += dy^T * x.                       dy [rows, n], x [rows, k], dw [n, k]
  void matmul_weight_gradient(const Tensor& dy, const Tensor& x, OperandRounding rounding,
                              const Tensor& dw);

  // matmul_input_gradient, then matmul_weight_gradient of the same dy; the bits are theirs.
  void matmul_gradients(const Tensor& dy, const PackedMatrix& w, const WeightGradient& of_weights,
                        const Tensor& dx);

  // dbias += sum of dy over rows.         dy [rows, n], dbias [n]
  void bias_gradient(const Tensor& dy, const Tensor& dbias);

  // Of Backend::attention over whole sequences, which see nothing of each other. Sums over keys are
  // in ascending order; those over queries run over tiles of 64 rows, in each over the heads of the
  // group, and over the rows of a head. Gradients of rows outside all sequences are not written.
  // Sequences are ascending.
  void attention_gradient(const AttentionGradientInputs& in,
                          std::span<const SequenceRows> sequences, const AttentionParams& params,
                          const AttentionGradients& out);

  // Of Backend::rms_norm: with s = 1 / sqrt(mean(x^2) + eps),
  // dx = s * (weight * dy - x * s^2 * mean(weight * dy * x)), in place of x or dy;
  // dweight += sum of dy * x * s over rows (and heads), where there is a dweight.
  //                                       dx like x, dweight [width] or nullptr
  void rms_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                         const Tensor* dweight);

  // Of Backend::layer_norm: with s = 1 / sqrt(variance + eps), z = (x - mean) * s and
  // g = weight * dy, dx = s * (g - mean(g) - z * mean(g * z)), in place of x or dy;
  // dweight += sum of dy * z, dbias += sum of dy over rows (and heads), where they are.
  //                                       dx like x, dweight, dbias [width] or nullptr
  void layer_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                           const Tensor* dweight, const Tensor* dbias);

  // dx = dout * activation'(x), in place of x or dout.    x, dout, dx [rows, width]
  void activation_gradient(Activation kind, const Tensor& x, const Tensor& dout, const Tensor& dx);

  // dgate = dout * up * activation'(gate), dup = dout * activation(gate), in place of gate and up;
  // of clamped_swiglu as Activation describes it, where a clamped input has the gradient 0.
  //                                       dgate, dup [rows, width]
  void gated_activation_gradient(Activation kind, const GatedGradientInputs& in,
                                 const Tensor& dgate, const Tensor& dup);

  // The gradients of x and w where gate and up are the halves of x * w^T: gated_activation_gradient
  // to dy = [dgate, dup], then matmul_input_gradient, and matmul_weight_gradient where there is
  // something of weights; the bits are theirs.
  //                                       in [rows, n / 2], w [n, k], dx [rows, k]
  void gated_matmul_gradients(Activation kind, const GatedGradientInputs& in, const PackedMatrix& w,
                              const WeightGradient* of_weights, const Tensor& dx);

  // dx = dy * (1 - tanh(x / cap)^2), in place of x or dy.    x, dy, dx [rows, width]
  void soft_cap_gradient(const Tensor& x, float cap, const Tensor& dy, const Tensor& dx);

  // dtable[ids[r]] += dout[r] * scale, rows in ascending order.   dout [rows, hidden], dtable
  // [vocab, hidden]
  void embedding_gradient(std::span<const int32_t> ids, float scale, const Tensor& dout,
                          const Tensor& dtable);

  // Cross-entropy of rows of logits: losses[r] = log_sum_exp(logits[r]) - logits[r, targets[r]],
  // then logits[r] = (softmax(logits[r]) - onehot(targets[r])) * weights[r] in place. A row of
  // weight 0 has loss 0 and zeros, whatever its logits and its target.
  //                                       logits [rows, vocab], the others [rows]
  void cross_entropy_gradient(std::span<const int32_t> targets, std::span<const float> weights,
                              const Tensor& logits, std::span<float> losses);

  // out = x rounded to `dtype`, float32 (a copy), bfloat16 or float16, in place: what attention
  // reads of keys and values that are stored in it.
  //                                       x, out [..., width] (rank 2 or 3)
  void copy_rounded(const Tensor& x, DType dtype, const Tensor& out);

  // out = x with dropped elements, in place: 0 where one is dropped.     x, out [rows, width]
  void drop_elements(const DroppedElements& dropped, const Tensor& x, const Tensor& out);

 protected:
  // What becomes of the elements of dx that are there.
  enum class Former : uint8_t { replaced, added_to };
  virtual void do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, Former former,
                                        const Tensor& dx) = 0;

  virtual void do_matmul_weight_gradient(const Tensor& dy, const Tensor& x,
                                         OperandRounding rounding, const Tensor& dw) = 0;
  // By default by the operations that they consist of.
  virtual void do_matmul_gradients(const Tensor& dy, const PackedMatrix& w,
                                   const WeightGradient& of_weights, const Tensor& dx);
  virtual void do_gated_matmul_gradients(Activation kind, const GatedGradientInputs& in,
                                         const PackedMatrix& w, const WeightGradient* of_weights,
                                         const Tensor& dx);
  // By default in plain loops, in the CPU's memory.
  virtual void do_drop_elements(const DroppedElements& dropped, const Tensor& x, const Tensor& out);

 private:
  virtual void do_bias_gradient(const Tensor& dy, const Tensor& dbias) = 0;
  virtual void do_attention_gradient(const AttentionGradientInputs& in,
                                     std::span<const SequenceRows> sequences,
                                     const AttentionParams& params,
                                     const AttentionGradients& out) = 0;
  virtual void do_rms_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                                    const Tensor* dweight) = 0;
  virtual void do_layer_norm_gradient(const NormGradientInputs& in, float eps, const Tensor& dx,
                                      const Tensor* dweight, const Tensor* dbias) = 0;
  virtual void do_activation_gradient(Activation kind, const Tensor& x, const Tensor& dout,
                                      const Tensor& dx) = 0;
  virtual void do_gated_activation_gradient(Activation kind, const GatedGradientInputs& in,
                                            const Tensor& dgate, const Tensor& dup) = 0;
  virtual void do_soft_cap_gradient(const Tensor& x, float cap, const Tensor& dy,
                                    const Tensor& dx) = 0;
  virtual void do_embedding_gradient(std::span<const int32_t> ids, float scale, const Tensor& dout,
                                     const Tensor& dtable) = 0;
  virtual void do_cross_entropy_gradient(std::span<const int32_t> targets,
                                         std::span<const float> weights, const Tensor& logits,
                                         std::span<float> losses) = 0;
  virtual void do_copy_rounded(const Tensor& x, DType dtype, const Tensor& out) = 0;
};

// About the scratch that a CPU backend allocates for gradients of up to `rows` rows: inputs of a
// product of up to `widest` elements as bfloat16, by rows and by columns, the operands of a
// gradient of weights or of some heads' attention, and the transposed weights or the tiles of
// attention of each thread.
size_t cpu_gradient_bytes(int64_t rows, int64_t widest, int64_t head_dim, int num_threads);

}  // namespace paceline
