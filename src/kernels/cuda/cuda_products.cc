// Products with packed weights, and what is made of them.
#include <algorithm>

#include "kernels/cuda/code/matmul_few.h"
#include "kernels/cuda/code/matmul_float.h"
#include "kernels/cuda/code/matmul_tiles.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"
#include "kernels/cuda/product_views.h"
#include "kernels/cuda/tile_launch.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kMostBlocksY = 65535;
// The rows whose rounded inputs are in memory at once.
constexpr int64_t kPackedRows = 4096;
// The rows of a feed-forward network whose inner columns are in memory at once.
constexpr int64_t kMlpRows = 2048;
// Quantised weights that are in memory as bfloat16 at once.
constexpr int64_t kUnpackedBytes = int64_t{64} << 20;

ProductParams product_params(const Tensor& x, const PackedColumns& columns, const Tensor& out) {
  return {.weights = plain_panels(*columns.matrix),
          .x = const_rows_of(x),
          .num_rows = x.size(0),
          .bias = columns.bias ? columns.bias->elements<float>() : nullptr,
          .first_column = columns.first,
          .num_columns = columns.count,
          .out = rows_of(out)};
}

}  // namespace

Tensor CudaBackend::scratch(ScratchBuffer& buffer, int64_t rows, int64_t width) {
  return {buffer.reserve_as<float>(rows * width), DType::f32, {rows, width}};
}

SplitSums CudaBackend::split_sums(int64_t tiles, int64_t segments, int64_t pieces) {
  if (arrivals_.size_bytes() < static_cast<size_t>(tiles) * sizeof(uint32_t)) {
    ++scratch_memory_.num_moves;
    arrivals_ = Buffer();
    arrivals_ = Buffer(memory_, static_cast<size_t>(tiles) * sizeof(uint32_t));
  }
  return {.num_segments = static_cast<uint32_t>(segments),
          .partials = segment_sums_.reserve_as<Floats4>(tiles * segments * pieces),
          .arrivals = static_cast<uint32_t*>(arrivals_.get())};
}

template <class Kernel>
void CudaBackend::run_few_rows(const Tensor& x, typename Kernel::Params params, const Tensor& out) {
  params.x = const_rows_of(x);
  params.is_aligned = can_copy_inputs(x);
  params.num_rows = x.size(0);
  params.out = rows_of(out);
  const int64_t tiles = 2 * num_tiles(params.columns[0].first, params.num_columns, kPanelWidth);
  launch<Kernel>(device_, {static_cast<uint32_t>(divide_up(tiles, int64_t{Kernel::kColumnTiles}))},
                 params);
}

void CudaBackend::multiply_few_rows(const Tensor& x, const PackedColumns& columns,
                                    const Tensor& out) {
  with_few_tiles<1, 4, FewRowsShared<1, 8>>(
      x.size(1), shared_bytes_, [&]<uint32_t kTiles, uint32_t kSplits>() {
        run_few_rows<MatmulFewRows<1, kTiles, kSplits>>(
            x, {.columns = {panel_columns(columns)}, .num_columns = columns.count}, out);
      });
}

InputPanels CudaBackend::input_panels(ScratchBuffer& buffer, int64_t rows, int64_t width) {
  const int64_t panels = divide_up(rows, kPanelWidth), stages = num_stages(width);
  return {buffer.reserve_as<uint32_t>(panels * stages * kStageWords), static_cast<uint32_t>(stages),
          static_cast<uint32_t>(panels)};
}

InputPanels CudaBackend::pack_inputs(const Tensor& x) {
  if (const std::optional<InputPanels> normed = normed_.panels_of(x)) return *normed;
  const InputPanels packed = input_panels(packed_inputs_, x.size(0), x.size(1));
  launch<PackInputs>(device_, {packed.panels, packed.stages},
                     {.x = const_rows_of(x),
                      .num_rows = x.size(0),
                      .width = static_cast<uint32_t>(x.size(1)),
                      .is_aligned = can_copy_inputs(x),
                      .out = packed});
  return packed;
}

template <bool kGated>
bool CudaBackend::multiply_in_tiles(const TileParams& params) {
  const ProductSize product{.rows = params.num_rows,
                            .columns = params.num_columns,
                            .inputs = params.columns[0].weights.k,
                            .is_gated = kGated};
  const std::optional<TileChoice> choice = choose_tile(product, tile_device_);
  if (!choice) return false;
  launch_tiles<kGated>(device_, params, *choice, tile_device_,
                       [this](int64_t tiles, int64_t segments, int64_t pieces) {
                         return split_sums(tiles, segments, pieces);
                       });
  return true;
}

void CudaBackend::multiply_packed(const InputPanels& x, int64_t rows, const PackedColumns& columns,
                                  const Tensor& out) {
  TileParams params{
      .columns = {}, .num_columns = columns.count, .x = x, .num_rows = rows, .out = rows_of(out)};
  if (is_bf16(columns)) {
    params.columns[0] = panel_columns(columns);
    multiply_in_tiles<false>(params);
    return;
  }
  // Some panels at a time become bfloat16.
  const GroupedPanels groups = grouped_panels(*columns.matrix);
  const int64_t stages = num_stages(columns.matrix->k), panel_bytes = stages * kStageBytes;
  const int64_t panels = num_panels(columns), first_panel = columns.first / kPanelWidth;
  const int64_t at_once = std::max<int64_t>(1, kUnpackedBytes / panel_bytes);
  for (int64_t first = 0; first < panels; first += at_once) {
    const int64_t count = std::min(at_once, panels - first);
    auto* const unpacked = unpacked_weights_.reserve_as<std::byte>(count * panel_bytes);
    launch<UnpackGroups>(device_, {static_cast<uint32_t>(count), static_cast<uint32_t>(stages)},
                         {.weights = groups, .first_panel = first_panel + first, .out = unpacked});
    const int64_t begin = std::max(columns.first, (first_panel + first) * kPanelWidth);
    const int64_t end =
        std::min(columns.first + columns.count, (first_panel + first + count) * kPanelWidth);
    params.columns[0] = {
        .weights = {.first = unpacked,
                    .panel_bytes = kStageBytes,
                    .k = static_cast<uint32_t>(columns.matrix->k),
                    .stage_bytes = count * kStageBytes},
        .bias = columns.bias ? columns.bias->elements<float>() + (begin - begin % kPanelWidth)
                             : nullptr,
        .first = begin % kPanelWidth};
    params.num_columns = end - begin;
    params.out = rows_of(out);
    params.out.first += begin - columns.first;
    multiply_in_tiles<false>(params);
  }
}

void CudaBackend::multiply_floats(const Tensor& x, const PackedColumns& columns,
                                  const Tensor& out) {
  const PackedMatrix& w = *columns.matrix;
  const ProductParams params = product_params(x, columns, out);
  const Grid grid{static_cast<uint32_t>(num_panels(columns)),
                  static_cast<uint32_t>(
                      std::min(divide_up(x.size(0), int64_t{kFloatProductRows}), kMostBlocksY))};
  if (w.dtype == DType::f16) return run<MatmulFloat<F16>>(grid, params);
  run<MatmulFloat<float>>(grid, params);
}

void CudaBackend::multiply(const Tensor& x, const PackedColumns& columns, const Tensor& out) {
  const PackedMatrix& w = *columns.matrix;
  const int64_t rows = x.size(0);
  if (!w.groups && w.dtype != DType::bf16) return multiply_floats(x, columns, out);
  if (w.groups && rows <= kMostCodeRows) return multiply_codes(x, columns, out);
  if (rows > kFewRows) return multiply_many_rows(x, columns, out);
  multiply_few_rows(x, columns, out);
}

void CudaBackend::multiply_many_rows(const Tensor& x, const PackedColumns& columns,
                                     const Tensor& out) {
  const int64_t rows = x.size(0);
  for (int64_t first = 0; first < rows; first += kPackedRows) {
    const int64_t end = std::min(first + kPackedRows, rows);
    multiply_packed(pack_inputs(x.slice(0, first, end)), end - first, columns,
                    out.slice(0, first, end));
  }
}

void CudaBackend::do_matmul(const Tensor& x, const PackedMatrix& w, const Tensor* bias,
                            const Tensor& out) {
  PackedColumns columns{.matrix = &w, .first = 0, .count = w.n};
  if (bias != nullptr) columns.bias = *bias;
  multiply(x, columns, out);
}

// The gate, what it multiplies and the activation in one kernel, which writes the inputs of the
// last product as that reads them: the bits of three kernels.
bool CudaBackend::multiply_gated(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) {
  if (mlp.gate.matrix->groups && mlp.up.matrix->groups) return multiply_gated_codes(mlp, x, out);
  if (!is_bf16(mlp.gate) || !is_bf16(mlp.up) ||
      mlp.gate.first % kPanelWidth != mlp.up.first % kPanelWidth) {
    return false;
  }
  const int64_t rows = x.size(0), width = mlp.gate.count;
  const auto activation = static_cast<ActivationKind>(mlp.activation);
  if (rows <= kFewRows) {
    const Tensor inner = scratch(gate_rows_, rows, width);
    with_few_tiles<2, 4, FewRowsShared<1, 8>>(
        x.size(1), shared_bytes_, [&]<uint32_t kTiles, uint32_t kSplits>() {
          run_few_rows<MatmulFewRows<2, kTiles, kSplits>>(
              x,
              {.columns = {panel_columns(mlp.gate), panel_columns(mlp.up)},
               .num_columns = width,
               .activation = activation},
              inner);
        });
    multiply(inner, mlp.down, out);
    return true;
  }
  const PanelColumns gate = panel_columns(mlp.gate), up = panel_columns(mlp.up);
  if (mlp.gate.first % kPanelWidth != 0 || gate.weights.stage_bytes != up.weights.stage_bytes ||
      (!is_bf16(mlp.down) && !mlp.down.matrix->groups)) {
    return false;
  }
  const InputPanels inner = input_panels(packed_inner_, rows, width);
  if (width % kStageInputs != 0) {  // what no tile writes
    device_.clear(inner.first, size_t{inner.panels} * inner.stages * kStageBytes);
  }
  const bool is_done = multiply_in_tiles<true>({.columns = {gate, up},
                                                .second_matrix = up.panel(0) - gate.panel(0),
                                                .num_columns = width,
                                                .x = pack_inputs(x),
                                                .num_rows = rows,
                                                .activation = activation,
                                                .gated_out = inner});
  if (!is_done) return false;
  multiply_packed(inner, rows, mlp.down, out);
  return true;
}

void CudaBackend::do_gated_mlp(const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) {
  const int64_t width = mlp.gate.count;
  for (int64_t first = 0; first < x.size(0); first += kMlpRows) {
    const int64_t end = std::min(first + kMlpRows, x.size(0));
    const Tensor inputs = x.slice(0, first, end), outputs = out.slice(0, first, end);
    if (multiply_gated(mlp, inputs, outputs)) continue;
    const Tensor gate = scratch(gate_rows_, end - first, width);
    const Tensor up = scratch(up_rows_, end - first, width);
    multiply(inputs, mlp.gate, gate);
    multiply(inputs, mlp.up, up);
    do_gated_activation(mlp.activation, gate, up, gate);
    multiply(gate, mlp.down, outputs);
  }
}

}  // namespace paceline::cuda
