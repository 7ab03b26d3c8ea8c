// TransposedProduct multiplies prepared rows by w, of which there are only the panels of w^T: it
// transposes some columns of one segment of outputs at a time, into scratch of one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernel_table.h"
#include "kernels/packed_matrix.h"

namespace paceline {

class TransposedProduct {
 public:
  // Both must outlive it.
  TransposedProduct(const KernelTable& kernels, const PackedMatrix& matrix);

  // Prepares a row of [n] inputs.
  void prepare(const float* dy, std::byte* row) const;
  int64_t input_stride() const { return input_stride_; }  // bytes
  int64_t scratch_bytes() const { return transposed_bytes() + expanded_bytes(); }
  // Those of bfloat16 weights.
  static int64_t usual_scratch_bytes();
  // The product's columns (w's K) are cut into blocks of this many, which one thread transposes.
  int64_t block_columns() const { return block_columns_; }
  int64_t num_blocks() const;

  struct Piece {
    const std::byte* inputs = nullptr;  // the first row, prepared
    int64_t num_rows = 0;
    int64_t block = 0;
    float* out = nullptr;  // the first row, column 0 of the product
    int64_t out_stride = 0;
    std::byte* scratch = nullptr;
    bool adds = false;  // to the outputs instead of replacing them
  };
  void multiply(const Piece& piece) const;

 private:
  // Some outputs (panels of w) by some inputs, the block's.
  struct Part {
    int64_t first_panel;
    int64_t num_panels;
    int64_t first_k;
    int64_t num_k;
  };

  void transpose(const Part& part, std::byte* scratch) const;
  void expand_and_transpose(const Part& part, std::byte* scratch) const;
  int64_t transposed_panel_bytes() const;
  int64_t transposed_bytes() const;
  int64_t expanded_bytes() const;

  const KernelTable& kernels_;
  const PackedMatrix& matrix_;
  DType dtype_;  // of the product
  int64_t block_columns_ = 0;
  int64_t padded_n_ = 0;
  int64_t input_stride_ = 0;
};

}  // namespace paceline
