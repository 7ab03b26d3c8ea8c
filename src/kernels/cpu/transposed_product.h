// TransposedProduct multiplies prepared rows by w, of which there are only the panels of w^T: it
// transposes some columns of one segment of outputs at a time, into scratch of one thread, or all
// of a small matrix first, for all threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/product_split.h"
#include "kernels/packed_matrix.h"
#include "tensor/tensor.h"

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

  // Whether all of w is transposed first: where many rows meet tile registers, and the transpose
  // has at most `most_bytes`.
  bool is_transposed_whole(int64_t num_rows, int64_t num_threads, int64_t most_bytes) const;
  int64_t whole_bytes() const;
  int64_t num_whole_panels() const { return matrix_.num_panels(); }
  // Transposes panel `panel` of w.
  void transpose_panel(int64_t panel, std::byte* whole) const;
  // Pieces of a split are rows by panels of the transpose.
  ProductSplit whole_split(int64_t num_rows, int64_t num_threads) const;
  // The piece's first row of all of `inputs` and `out`, and panels of the transpose.
  void multiply_whole(const ProductSplit::Piece& piece, const std::byte* inputs,
                      const std::byte* whole, const Tensor& out, bool adds) const;

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
  int64_t whole_panel_elements() const { return matrix_.num_panels() * kPanelWidth * kPanelWidth; }

  const KernelTable& kernels_;
  const PackedMatrix& matrix_;
  DType dtype_;  // of the product
  int64_t block_columns_ = 0;
  int64_t padded_n_ = 0;
  int64_t input_stride_ = 0;
};

}  // namespace paceline
