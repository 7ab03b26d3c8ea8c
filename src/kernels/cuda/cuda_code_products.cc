// Products of up to kMostCodeRows rows with quantised weights, whose codes become operands in
// registers.
#include <algorithm>

#include "kernels/cuda/code/matmul_codes.h"
#include "kernels/cuda/code/matmul_few_codes.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"
#include "kernels/cuda/product_views.h"

namespace paceline::cuda {
namespace {

// Products of at most this many rows have blocks of 32 rows, else of 64.
constexpr int64_t kFewTiledRows = 32;
// Beyond these, inputs of all segments take a block longer to round than adding the segments' sums.
constexpr int64_t kMostUnsplitRows = 2;
constexpr int64_t kMostUnsplitSegments = 4;

bool have_same_codes(const PackedColumns& a, const PackedColumns& b) {
  const Grouping &first = a.matrix->groups->grouping, &second = b.matrix->groups->grouping;
  return first.bits == second.bits && first.group_size == second.group_size &&
         first.has_multiples() == second.has_multiples();
}

}  // namespace

template <class Kernel>
void CudaBackend::run_few_codes(const Tensor& x, typename Kernel::Params params, const Tensor& out,
                                int64_t segments) {
  params.x = const_rows_of(x);
  params.is_aligned = can_copy_inputs(x);
  params.num_rows = x.size(0);
  params.out = rows_of(out);
  // Fewer tiles for each block where the device would have multiprocessors left.
  const int64_t tiles = 2 * num_tiles(params.columns[0].first, params.num_columns, kPanelWidth);
  int64_t of_block = Kernel::kColumnTiles;
  const auto blocks = [&] { return divide_up(tiles, of_block); };
  while (of_block > 1 && 3 * blocks() * segments < 2 * multiprocessors_) of_block /= 2;
  params.block_tiles = static_cast<uint32_t>(of_block);
  if (segments > 1) {
    params.split = split_sums(blocks(), segments, int64_t{FewCodeSums::kPieces} * Kernel::kThreads);
  }
  run<Kernel>({.x = static_cast<uint32_t>(blocks()), .z = static_cast<uint32_t>(segments)}, params);
}

void CudaBackend::multiply_few_codes(const Tensor& x, const PackedColumns& columns,
                                     const Tensor& out) {
  const FewCodesParams<1> params{.columns = {group_columns(columns)}, .num_columns = columns.count};
  const int64_t segments = num_segments(x.size(1));
  if (x.size(0) > kMostUnsplitRows && segments > kMostUnsplitSegments) {
    return run_few_codes<MatmulFewCodes<1, 8, 1>>(x, params, out, segments);
  }
  with_few_tiles<1, 8, FewCodesShared<1, 8>>(
      x.size(1), shared_bytes_, [&]<uint32_t kTiles, uint32_t kSplits>() {
        run_few_codes<MatmulFewCodes<1, kTiles, kSplits>>(x, params, out, 1);
      });
}

CodeInputs CudaBackend::reserve_code_inputs(ScratchBuffer& buffer, int64_t rows, int64_t width) {
  const int64_t units = divide_up(width, int64_t{kUnitInputs});
  const int64_t tiles = divide_up(rows, int64_t{kRowGroup}) * kGroupTiles;
  return {buffer.reserve_as<uint32_t>(tiles * units * kTileWords), static_cast<uint32_t>(units)};
}

CodeInputs CudaBackend::pack_code_inputs(const Tensor& x) {
  const CodeInputs packed = reserve_code_inputs(packed_inputs_, x.size(0), x.size(1));
  const int64_t rows = x.size(0) > kFewTiledRows ? int64_t{kRowGroup} : kFewTiledRows;
  run<PackCodeInputs>(
      {static_cast<uint32_t>(divide_up(x.size(0), rows) * rows / kRowTile),
       static_cast<uint32_t>(divide_up(packed.units, int64_t{PackCodeInputs::kUnitsOfBlock}))},
      {.x = const_rows_of(x),
       .num_rows = x.size(0),
       .width = static_cast<uint32_t>(x.size(1)),
       .is_aligned = can_copy_inputs(x),
       .out = packed});
  return packed;
}

template <bool kGated>
void CudaBackend::multiply_code_tiles(CodesParams params) {
  const int64_t panels = num_tiles(params.columns[0].first, params.num_columns, kPanelWidth);
  const int64_t column_blocks = divide_up(kGated ? 2 * panels : panels, int64_t{kCodeWarps});
  const int64_t inputs = params.columns[0].weights.k, segments = num_segments(inputs);
  const auto row_blocks = [&](int64_t rows) { return divide_up(params.num_rows, rows); };
  const auto is_enough = [&](int64_t blocks) { return 10 * blocks >= 9 * multiprocessors_; };
  const auto run_blocks = [&]<uint32_t kRowTiles>(bool is_split) {
    using Kernel = MatmulCodes<kRowTiles, kGated>;
    const int64_t of_columns = row_blocks(int64_t{kRowTiles} * kRowTile);
    const int64_t blocks = column_blocks * of_columns;
    params.num_row_blocks = static_cast<uint32_t>(of_columns);
    if (is_split && segments > 1) {
      params.split =
          split_sums(blocks, segments, int64_t{Kernel::Sums::kPieces} * Kernel::kThreads);
    }
    run<Kernel>({.x = static_cast<uint32_t>(blocks), .z = std::max(1u, params.split.num_segments)},
                params);
  };
  const int64_t large = column_blocks * row_blocks(kRowGroup);
  if (params.num_rows > kFewTiledRows) {
    if (is_enough(large)) return run_blocks.template operator()<8>(false);
    if (is_enough(large * segments)) return run_blocks.template operator()<8>(true);
  }
  run_blocks.template operator()<4>(!is_enough(column_blocks * row_blocks(kFewTiledRows)));
}

void CudaBackend::multiply_codes(const Tensor& x, const PackedColumns& columns, const Tensor& out) {
  if (x.size(0) <= kFewCodeRows) return multiply_few_codes(x, columns, out);
  multiply_code_tiles<false>({.columns = {group_columns(columns)},
                              .num_columns = columns.count,
                              .x = pack_code_inputs(x),
                              .num_rows = x.size(0),
                              .out = rows_of(out)});
}

bool CudaBackend::multiply_gated_codes(const GatedMlpWeights& mlp, const Tensor& x,
                                       const Tensor& out) {
  const int64_t rows = x.size(0), width = mlp.gate.count;
  const auto activation = static_cast<ActivationKind>(mlp.activation);
  const GroupColumns gate = group_columns(mlp.gate), up = group_columns(mlp.up);
  if (gate.first % kPanelWidth != up.first % kPanelWidth || rows > kMostCodeRows) return false;
  if (rows <= kFewCodeRows) {
    const Tensor inner = scratch(gate_rows_, rows, width);
    with_few_tiles<2, 8, FewCodesShared<1, 8>>(
        x.size(1), shared_bytes_, [&]<uint32_t kTiles, uint32_t kSplits>() {
          run_few_codes<MatmulFewCodes<2, kTiles, kSplits>>(
              x, {.columns = {gate, up}, .num_columns = width, .activation = activation}, inner, 1);
        });
    multiply(inner, mlp.down, out);
    return true;
  }
  if (gate.first % kPanelWidth != 0 || !have_same_codes(mlp.gate, mlp.up) ||
      !mlp.down.matrix->groups) {
    return false;
  }
  const CodeInputs inner = reserve_code_inputs(packed_inner_, rows, width);
  if (width % kUnitInputs != 0) {  // what no block writes
    const int64_t tiles = divide_up(rows, int64_t{kRowGroup}) * kGroupTiles;
    device_.clear(inner.first, static_cast<size_t>(tiles * inner.units) * kTileWords * 4);
  }
  multiply_code_tiles<true>({.columns = {gate, up},
                             .num_columns = width,
                             .x = pack_code_inputs(x),
                             .num_rows = rows,
                             .activation = activation,
                             .gated_out = inner});
  multiply_code_tiles<false>({.columns = {group_columns(mlp.down)},
                              .num_columns = mlp.down.count,
                              .x = inner,
                              .num_rows = rows,
                              .out = rows_of(out)});
  return true;
}

}  // namespace paceline::cuda
