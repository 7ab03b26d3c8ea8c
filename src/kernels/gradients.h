// GradientOps is every operation of a backward pass, on the device of the Backend that returns it.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operands.h"
#include "tensor/tensor.h"

namespace paceline {

// Whether the operands of a product are rounded first.
enum class OperandRounding : uint8_t { none, bfloat16 };

// The rows of a segment of a sum over rows.
constexpr int64_t kGradientRows = 256;

// Gradients are of one scalar, the loss: dy has the shape of y and holds the loss's derivatives by
// y. The rules of Backend hold: shapes are checked in the front door, gradients are float32, and
// every output element is a fixed sequence of floating-point operations, whatever the number of
// threads. Where an operation adds to a gradient of weights, rows are cut into segments of
// kGradientRows, counted from the call's first row: each is summed from zero in ascending order,
// and the sums are added in ascending order. So one call with several segments and several calls
// with one each give the same bits.
class GradientOps {
 public:
  virtual ~GradientOps() = default;

  // dx = dy * w; dy is rounded to bfloat16 first when w is bfloat16 or quantised. Quantised weights
  // count as their values in bfloat16.
  //                                       dy [rows, n], w [n, k], dx [rows, k]
  void matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx);

  // dw += dy^T * x.                       dy [rows, n], x [rows, k], dw [n, k]
  void matmul_weight_gradient(const Tensor& dy, const Tensor& x, OperandRounding rounding,
                              const Tensor& dw);

 private:
  virtual void do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w,
                                        const Tensor& dx) = 0;
  virtual void do_matmul_weight_gradient(const Tensor& dy, const Tensor& x,
                                         OperandRounding rounding, const Tensor& dw) = 0;
};

}  // namespace paceline
