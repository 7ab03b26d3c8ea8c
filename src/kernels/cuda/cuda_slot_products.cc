// Mixtures of experts for few rows, whose choice of experts stays on the device: each slot's row is
// multiplied by itself.
#include <algorithm>

#include "kernels/cuda/code/expert_products.h"
#include "kernels/cuda/code/route.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/operand_views.h"
#include "kernels/cuda/product_views.h"
#include "kernels/decode_slots.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kTilesOfBlock = 4;
constexpr int64_t kCopiedInputs = 4;

enum class SlotKernel : int { gated, gated_codes, few_rows, codes, f32, f16 };

// That multiply() has for a row.
SlotKernel slot_kernel(const PackedColumns& columns) {
  if (columns.matrix->groups) return SlotKernel::codes;
  if (columns.matrix->dtype == DType::f32) return SlotKernel::f32;
  return columns.matrix->dtype == DType::f16 ? SlotKernel::f16 : SlotKernel::few_rows;
}

const float* bias_of(const PackedColumns& columns) {
  return columns.bias ? columns.bias->elements<float>() : nullptr;
}

int64_t address(const void* place) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(place));
}

// All that a product's parameters are made of.
void append_parts(const PackedColumns& columns, std::vector<int64_t>& parts) {
  const PackedMatrix& matrix = *columns.matrix;
  parts.insert(parts.end(),
               {address(matrix.storage.get()), matrix.n, matrix.k, matrix.panel_bytes(),
                columns.first, columns.count, address(bias_of(columns))});
  if (!matrix.groups) return;
  const Grouping& grouping = matrix.groups->grouping;
  parts.insert(
      parts.end(),
      {int64_t{grouping.bits}, int64_t{grouping.group_size}, int64_t{grouping.groups_per_factor},
       int64_t{grouping.zero_point.value_or(0)}, int64_t{matrix.groups->has_offsets()}});
}

bool can_multiply_gated(const GatedMlpWeights& mlp) {
  const bool has_bf16 = is_bf16(mlp.gate) && is_bf16(mlp.up);
  const bool has_codes = mlp.gate.matrix->groups && mlp.up.matrix->groups;
  return (has_bf16 || has_codes) && mlp.gate.first % kPanelWidth == mlp.up.first % kPanelWidth;
}

}  // namespace

struct CudaBackend::SlotProduct {
  std::span<const GatedMlpWeights> experts;
  PackedColumns GatedMlpWeights::*columns = nullptr;
  bool is_gated = false;  // the gate, with what it multiplies and the activation
  const Routing& routing;
  int64_t slots_of_input = 1;  // that share a row of x
  Tensor x;
  Tensor out;

  int part() const {
    return columns == &GatedMlpWeights::gate ? 0 : columns == &GatedMlpWeights::up ? 1 : 2;
  }
};

template <class Kernel, class Make>
void CudaBackend::run_slot_kernel(const SlotProduct& product, int kernel, Make&& make) {
  std::vector<ExpertProduct<Kernel>> table(product.experts.size());
  std::vector<int64_t> made_of;
  uint32_t most_tiles = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const PackedColumns& columns = product.experts[i].*product.columns;
    make(product.experts[i], columns, table[i]);
    most_tiles = std::max(most_tiles, table[i].num_tiles);
    append_parts(columns, made_of);
    if (product.is_gated) append_parts(product.experts[i].up, made_of);
    made_of.insert(made_of.end(), {static_cast<int64_t>(product.experts[i].activation),
                                   int64_t{table[i].num_tiles}});
  }
  if (most_tiles == 0) return;
  const Routing& routing = product.routing;
  const void* const on_device =
      expert_tables_.place(device_, {product.experts.data(), product.part(), kernel}, made_of,
                           std::as_bytes(std::span(table)));
  const auto num_slots = static_cast<uint32_t>(routing.num_slots());
  run<ExpertProducts<Kernel>>(
      {.x = most_tiles, .z = static_cast<uint32_t>(routing.num_rows()) * num_slots},
      {.products = static_cast<const ExpertProduct<Kernel>*>(on_device),
       .num_experts = static_cast<uint32_t>(table.size()),
       .chosen = routing.experts.elements<int32_t>(),
       .chosen_stride = routing.experts.stride(0),
       .num_slots = num_slots,
       .slots_of_input = static_cast<uint32_t>(product.slots_of_input),
       .x = const_rows_of(product.x),
       .out = rows_of(product.out)});
}

void CudaBackend::multiply_slots(const SlotProduct& product) {
  const auto set_few_rows = [&product](const auto& columns_of, const PackedColumns& columns,
                                       auto& entry) {
    entry.params.columns[0] = columns_of(columns);
    entry.params.num_columns = columns.count;
    entry.params.is_aligned = can_copy_inputs(product.x) && columns.matrix->k % kCopiedInputs == 0;
    entry.num_tiles = static_cast<uint32_t>(divide_up(2 * num_panels(columns), kTilesOfBlock));
  };
  const auto set_codes = [&](const PackedColumns& columns, uint32_t of_block, auto& entry) {
    set_few_rows(group_columns, columns, entry);
    entry.params.block_tiles = of_block;
  };
  if (product.is_gated) {  // two tiles of each matrix
    run_slot_kernel<MatmulFewRows<2, kTilesOfBlock, 2>>(
        product, static_cast<int>(SlotKernel::gated),
        [&](const GatedMlpWeights& mlp, const PackedColumns& gate, auto& entry) {
          if (!is_bf16(gate)) return;
          set_few_rows(panel_columns, gate, entry);
          entry.params.columns[1] = panel_columns(mlp.up);
          entry.params.activation = static_cast<ActivationKind>(mlp.activation);
          entry.num_tiles = static_cast<uint32_t>(num_panels(gate));
        });
    return run_slot_kernel<MatmulFewCodes<2, kTilesOfBlock, 2>>(
        product, static_cast<int>(SlotKernel::gated_codes),
        [&](const GatedMlpWeights& mlp, const PackedColumns& gate, auto& entry) {
          if (!gate.matrix->groups) return;
          set_codes(gate, kTilesOfBlock / 2, entry);
          entry.params.columns[1] = group_columns(mlp.up);
          entry.params.activation = static_cast<ActivationKind>(mlp.activation);
          entry.num_tiles = static_cast<uint32_t>(num_panels(gate));
        });
  }
  // Calls body for the experts that the kernel multiplies.
  const auto run_for = [&]<class Kernel>(SlotKernel kernel, auto&& body) {
    run_slot_kernel<Kernel>(
        product, static_cast<int>(kernel),
        [&](const GatedMlpWeights& /*mlp*/, const PackedColumns& columns, auto& entry) {
          if (slot_kernel(columns) == kernel) body(columns, entry);
        });
  };
  const auto with_floats = [](const PackedColumns& columns, auto& entry) {
    entry.params.weights = plain_panels(*columns.matrix);
    entry.params.bias = bias_of(columns);
    entry.params.first_column = columns.first;
    entry.params.num_columns = columns.count;
    entry.num_tiles = static_cast<uint32_t>(num_panels(columns));
  };
  run_for.template operator()<MatmulFewRows<1, kTilesOfBlock, 2>>(
      SlotKernel::few_rows, [&](const PackedColumns& columns, auto& entry) {
        set_few_rows(panel_columns, columns, entry);
      });
  run_for.template operator()<MatmulFewCodes<1, kTilesOfBlock, 2>>(
      SlotKernel::codes,
      [&](const PackedColumns& columns, auto& entry) { set_codes(columns, kTilesOfBlock, entry); });
  run_for.template operator()<MatmulFloat<float>>(SlotKernel::f32, with_floats);
  run_for.template operator()<MatmulFloat<F16>>(SlotKernel::f16, with_floats);
}

// Experts may have inner columns of different numbers: what stands behind a slot's own is not read.
bool CudaBackend::mix_slots(std::span<const GatedMlpWeights> experts, const Routing& routing,
                            const Tensor& x, const Tensor& out) {
  const Activation activation = experts.front().activation;
  const auto has_it = [activation](const GatedMlpWeights& mlp) {
    return mlp.activation == activation;
  };
  if (x.size(0) > kMostMixedRows || !std::ranges::all_of(experts, has_it)) return false;
  constexpr int64_t kInputs = 4;
  int64_t width = 0;
  for (const GatedMlpWeights& mlp : experts) width = std::max(width, mlp.gate.count);
  width = divide_up(width, kInputs) * kInputs;
  const int64_t num_slots = routing.num_slots(), total = x.size(0) * num_slots;
  const Tensor inner = scratch(gate_rows_, total, width);
  SlotProduct product{.experts = experts,
                      .columns = &GatedMlpWeights::gate,
                      .is_gated = std::ranges::all_of(experts, can_multiply_gated),
                      .routing = routing,
                      .slots_of_input = num_slots,
                      .x = x,
                      .out = inner};
  multiply_slots(product);
  if (!product.is_gated) {
    const Tensor up = scratch(up_rows_, total, width);
    product.columns = &GatedMlpWeights::up;
    product.out = up;
    multiply_slots(product);
    do_gated_activation(activation, inner, up, inner);
  }
  const Tensor products = scratch(expert_products_, total, out.size(1));
  multiply_slots({.experts = experts,
                  .columns = &GatedMlpWeights::down,
                  .routing = routing,
                  .x = inner,
                  .out = products});
  run<CombineExperts>(element_grid(out.size(0), out.size(1)),
                      {.products = const_rows_of(products),
                       .weights = const_rows_of(routing.weights),
                       .num_slots = num_slots,
                       .out = rows_of(out),
                       .width = out.size(1)});
  return true;
}

}  // namespace paceline::cuda
