// How a product is cut into pieces for the threads: panels of columns, and blocks of rows.
#include "kernels/cpu/cpu_backend.h"

namespace paceline {
namespace {

// Fewer rows per block would read the weights too often.
constexpr int64_t kMinBlockRows = 24;
constexpr int64_t kPiecesPerThread = 6;
// A product of one row runs so many panels at a time.
constexpr int64_t kPanelsAtOnce = 8;
// Multiply-adds below which another thread is not worth waking.
constexpr int64_t kSmallProduct = 65536;
constexpr int64_t kCacheLine = 64;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Split {
  int64_t block_rows;
  int64_t piece_panels;
};

// By rows only where there are too few panels.
Split split_product(int64_t rows, int64_t num_panels, int64_t num_threads) {
  const int64_t wanted = kPiecesPerThread * num_threads;
  int64_t piece_panels = std::max<int64_t>(1, num_panels / wanted);
  if (piece_panels > kPanelsAtOnce / 2) {
    piece_panels = divide_up(piece_panels, kPanelsAtOnce) * kPanelsAtOnce;
  }
  const int64_t pieces = divide_up(num_panels, piece_panels);
  const int64_t most_blocks = std::max<int64_t>(1, rows / kMinBlockRows);
  const int64_t blocks = std::clamp<int64_t>(wanted / 2 / pieces, 1, most_blocks);
  return {divide_up(rows, blocks), piece_panels};
}

}  // namespace

CpuBackend::PreparedRows CpuBackend::prepare_rows(const Tensor& x, const PackedMatrix& w) {
  const auto dtype = static_cast<size_t>(w.dtype);
  const int64_t padded_k = w.padded_k();
  // One line more than the row: rows a power of two apart would share their cache sets.
  const int64_t bytes = padded_k * kernels_.input_bytes[dtype];
  const int64_t stride = divide_up(bytes, kCacheLine) * kCacheLine + kCacheLine;
  auto* const rows = input_rows_.reserve_as<std::byte>(x.size(0) * stride);
  for_each_row(x.size(0), w.k, [&](int64_t row) {
    kernels_.prepare_row[dtype](x.row<float>(row), w.k, padded_k, rows + row * stride);
  });
  return {rows, stride};
}

void CpuBackend::do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                           const Tensor& out) {
  const PreparedRows inputs = prepare_rows(x, w);
  const int64_t num_rows = x.size(0), num_panels = w.num_panels();
  const auto kernel = kernels_.matmul[static_cast<size_t>(w.dtype)];
  const Split split = split_product(num_rows, num_panels, threads_.num_threads());
  const int64_t row_blocks = divide_up(num_rows, split.block_rows);
  const int64_t pieces = divide_up(num_panels, split.piece_panels);
  const bool is_small = num_rows * w.n * w.k < kSmallProduct;

  threads_.parallel_for(
      row_blocks * pieces, is_small ? row_blocks * pieces : 1,
      [&](int64_t begin, int64_t end, int) {
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t first_row = unit / pieces * split.block_rows;
          const int64_t first_panel = unit % pieces * split.piece_panels;
          kernel({.inputs = inputs.rows + first_row * inputs.stride,
                  .input_stride = inputs.stride,
                  .num_rows = std::min(split.block_rows, num_rows - first_row),
                  .panels = w.storage.get(),
                  .panel_elements = w.panel_elements(),
                  .n = w.n,
                  .padded_k = w.padded_k(),
                  .first_panel = first_panel,
                  .last_panel = std::min(first_panel + split.piece_panels, num_panels),
                  .bias = bias != nullptr ? bias->elements<float>() : nullptr,
                  .out = out.row<float>(first_row),
                  .out_stride = out.stride(0)});
        }
      });
}

}  // namespace paceline
