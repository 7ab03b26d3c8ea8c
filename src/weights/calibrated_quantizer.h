// Quantises matrices in groups for the inputs that they are multiplied by: GPTQ (Frantar et al.,
// "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", 2022).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"
#include "weights/affine_rows.h"

namespace paceline {

// The mean square of each input over their mean, with a hundredth of it added, so that inputs that
// aren't used have some. moments [length, length] float32: the sum of x^T x over rows x of inputs.
std::vector<float> input_importance(const Tensor& moments);

// How the later weights of a row correct the rounding error of one weight. Made of the second
// moments of the inputs, one for all matrices that read them.
class ErrorFeedback {
 public:
  // A hundredth of the inputs' mean square is added to each one's, so moments may be of few rows.
  // Throws Error numerical "WHERE: ..." when they aren't finite.
  ErrorFeedback(const Tensor& moments, std::string_view where, ThreadPool& threads);

  int64_t length() const { return length_; }
  // Of weight i: the factors of its error for weights i, i + 1, ..., length - 1. The first is
  // positive.
  std::span<const float> row(int64_t i) const {
    return std::span(factors_).subspan(static_cast<size_t>(i * length_ + i),
                                       static_cast<size_t>(length_ - i));
  }
  // input_importance() of the moments.
  std::span<const float> importance() const { return importance_; }

 private:
  int64_t length_;
  std::vector<float> factors_;  // [length, length], upper triangular
  std::vector<float> importance_;
};

// AffineRows and the memory behind it.
class CalibratedAffineRows {
 public:
  // Quantises a contiguous matrix [rows, length] of whole groups. Scale and offset of a group have
  // the least squared error, weighted by importance, of what is left of its weights when those
  // before it have been rounded. Scales and biases get the matrix's float dtype. Throws Error
  // numerical "WHERE: ..." when an element isn't finite.
  CalibratedAffineRows(const Tensor& matrix, const ErrorFeedback& feedback, AffineFormat format,
                       std::string_view where, Memory& memory, ThreadPool& threads);

  const AffineTensors& tensors() const { return tensors_; }

 private:
  OwnedTensor words_, scales_, biases_;
  AffineTensors tensors_;
};

}  // namespace paceline
