// Quantises matrices in groups: as mlx.core.quantize does, and symmetrically in 8 bits.
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

// What mlx 0.32.4 chooses on the CPU, found by experiment and equal to it bit for bit: the end of
// the group's range that is farther from zero is the offset and gets code 0, and the scale is such
// that zero gets a code of its own. A group of zeros has the scale -1e-7.
AffineScale fit_affine(std::span<const float> group, int bits);

// AffineRows and the memory behind it.
class OwnedAffineRows {
 public:
  // Of the contiguous matrix [rows, row length] of a float dtype, which scales and biases have too.
  // A row is whole groups. Throws Error numerical "WHERE: ..." when an element is not finite, or a
  // group spans more than float32 can.
  OwnedAffineRows(const Tensor& matrix, AffineFormat format, std::string_view where, Memory& memory,
                  ThreadPool& threads);

  const AffineTensors& tensors() const { return tensors_; }

 private:
  OwnedTensor words_, scales_, biases_;
  AffineTensors tensors_;
};

}  // namespace paceline
