// Products with plain matrices.
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/product_split.h"

namespace paceline {

CpuBackend::PreparedRows CpuBackend::prepare_rows(const Tensor& x, const PackedMatrix& w) {
  const auto dtype = static_cast<size_t>(w.dtype);
  const int64_t padded_k = w.padded_k();
  const int64_t stride = input_stride_of(padded_k * kernels_.input_bytes[dtype]);
  auto* const rows = input_rows_.reserve_as<std::byte>(x.size(0) * stride);
  for_each_row(x.size(0), w.k, [&](int64_t row) {
    kernels_.prepare_row[dtype](x.row<float>(row), w.k, padded_k, rows + row * stride);
  });
  return {rows, stride};
}

void CpuBackend::do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                           const Tensor& out) {
  if (!w.groups) return multiply_plain(x, w, bias, out);
  if (w.groups->activations == ActivationType::int8) return multiply_int8(x, w, bias, out);
  multiply_expanded(x, w, bias, out);
}

void CpuBackend::multiply_plain(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                                const Tensor& out) {
  const PreparedRows inputs = prepare_rows(x, w);
  const auto kernel = kernels_.matmul[static_cast<size_t>(w.dtype)];
  const ProductSplit split(x.size(0), w.num_panels(), threads_.num_threads());
  threads_.parallel_for(split.num_pieces(), split.grain(x.size(0) * w.n * w.k),
                        [&](int64_t begin, int64_t end, int) {
                          for (int64_t i = begin; i < end; ++i) {
                            const ProductSplit::Piece piece = split.piece(i);
                            kernel({.inputs = inputs.rows + piece.first_row * inputs.stride,
                                    .input_stride = inputs.stride,
                                    .num_rows = piece.num_rows,
                                    .panels = w.storage.get(),
                                    .panel_elements = w.panel_elements(),
                                    .n = w.n,
                                    .padded_k = w.padded_k(),
                                    .first_panel = piece.first_panel,
                                    .last_panel = piece.last_panel,
                                    .bias = bias != nullptr ? bias->elements<float>() : nullptr,
                                    .out = out.row<float>(piece.first_row),
                                    .out_stride = out.stride(0)});
                          }
                        });
}

}  // namespace paceline
