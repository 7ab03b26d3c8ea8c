// Gradients of products: by their inputs and by their weights.
#include "kernels/cpu/cpu_gradients.h"
#include "kernels/cpu/product_split.h"
#include "kernels/cpu/row_split.h"
#include "kernels/cpu/transposed_product.h"

namespace paceline {

void CpuGradients::do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w,
                                            const Tensor& dx) {
  const TransposedProduct product(kernels_, w);
  const int64_t rows = dy.size(0), stride = product.input_stride();
  auto* const inputs = input_rows_.reserve_as<std::byte>(rows * stride);
  split_rows(threads_, rows, w.n,
             [&](int64_t row) { product.prepare(dy.row<float>(row), inputs + row * stride); });
  const int64_t scratch_bytes = product.scratch_bytes();
  auto* const scratch =
      thread_scratch_.reserve_as<std::byte>(threads_.num_threads() * scratch_bytes);
  const ProductSplit split(rows, product.num_blocks(), threads_.num_threads());
  threads_.parallel_for(split.num_pieces(), split.grain(rows * w.n * w.k),
                        [&](int64_t begin, int64_t end, int thread_index) {
                          for (int64_t i = begin; i < end; ++i) {
                            const ProductSplit::Piece piece = split.piece(i);
                            for (int64_t block = piece.first_panel; block < piece.last_panel;
                                 ++block) {
                              product.multiply({.inputs = inputs + piece.first_row * stride,
                                                .num_rows = piece.num_rows,
                                                .block = block,
                                                .out = dx.row<float>(piece.first_row),
                                                .out_stride = dx.stride(0),
                                                .scratch = scratch + thread_index * scratch_bytes});
                            }
                          }
                        });
}

}  // namespace paceline
