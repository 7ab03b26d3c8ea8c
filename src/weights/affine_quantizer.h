// Quantises matrices in groups like mlx.core.quantize.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/thread_pool.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"
#include "weights/affine_rows.h"

namespace paceline {

// Scale and offset of one group, before they are rounded to the matrix's dtype.
struct AffineScale {
  float scale = 0;
  float offset = 0;
};

// Chooses like mlx 0.32.4 on the CPU, bit for bit (found by experiment): the offset, with code 0,
// is the end of the group's range farther from zero; the scale gives zero an exact code. A group of
// zeros has the scale -1e-7.
AffineScale fit_affine(std::span<const float> group, int bits);

// AffineRows and the memory behind it.
class OwnedAffineRows {
 public:
  // Quantises a contiguous matrix [rows, row length] of whole groups; scales and biases get its
  // float dtype. Throws Error numerical "WHERE: ..." when an element isn't finite, or the range of
  // a group exceeds float32.
  OwnedAffineRows(const Tensor& matrix, AffineFormat format, std::string_view where, Memory& memory,
                  ThreadPool& threads);

  const AffineTensors& tensors() const { return tensors_; }

 private:
  OwnedTensor words_, scales_, biases_;
  AffineTensors tensors_;
};

}  // namespace paceline
