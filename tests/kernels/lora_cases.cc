#include "tests/kernels/lora_cases.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/divide_up.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

constexpr uint64_t kLoraSeed = 20240611;
const WeightType kLargeType = {"bfloat16", DType::bf16, {}};

// Adapters take turns at `rows` rows, `rows_each` at a time; the one behind the last has none.
// Three pairs of one stacked A, each with a third of the columns.
struct LoraInputs {
  OwnedTensor x, first_out, out;
  std::vector<PackedMatrix> matrices;
  std::vector<LoraSegment> segments;
};

struct LoraShape {
  int64_t rows = 1;
  int64_t rows_each = 1;
  int64_t adapters = 1;
  int64_t rank = 8;
  int64_t k = 64;
  int64_t columns = 96;  // of a pair
};

OpCase lora_case(const WeightType& type, const LoraShape& shape, CaseSize size) {
  constexpr int64_t kPairs = 3;
  const int64_t used = std::min(shape.adapters, divide_up(shape.rows, shape.rows_each));
  const double weights = static_cast<double>(shape.rank * kPairs * (shape.k + shape.columns));
  return {.name = fmt::format("add_lora {} {} rows of {} adapters {}x{}x{}", type.name, shape.rows,
                              shape.adapters, shape.k, shape.rank, shape.columns),
          .size = size,
          .tolerance = 1e-5,
          .bytes = weights * static_cast<double>(used) * type.bytes(),
          .make = [type, shape](ThreadPool& threads, Memory& memory) {
            auto in = std::make_shared<LoraInputs>();
            const int64_t n = kPairs * shape.columns;
            in->x = random_tensor(memory, DType::f32, {shape.rows, shape.k}, kLoraSeed, 0.1f);
            in->first_out = random_tensor(memory, DType::f32, {shape.rows, n}, kLoraSeed + 1);
            in->out = allocate_tensor(memory, DType::f32, {shape.rows, n});
            for (int64_t i = 0; i < 2 * shape.adapters; ++i) {
              const uint64_t seed = kLoraSeed + 2 + static_cast<uint64_t>(i);
              in->matrices.push_back(
                  i % 2 == 0
                      ? random_matrix(memory, threads, type, kPairs * shape.rank, shape.k, seed)
                      : random_matrix(memory, threads, type, shape.columns, shape.rank, seed));
            }
            for (int64_t row = 0; row < shape.rows; row += shape.rows_each) {
              const int64_t adapter = row / shape.rows_each % (shape.adapters + 1);
              if (adapter == shape.adapters) continue;
              for (int64_t pair = 0; pair < kPairs; ++pair) {
                in->segments.push_back({.first_row = row,
                                        .num_rows = std::min(shape.rows_each, shape.rows - row),
                                        .a = &in->matrices[static_cast<size_t>(2 * adapter)],
                                        .first_rank = pair * shape.rank,
                                        .b = &in->matrices[static_cast<size_t>(2 * adapter + 1)],
                                        .first_column = pair * shape.columns});
              }
            }
            const auto run = [in](Backend& backend) {
              copy_elements(in->first_out.view, in->out.view);
              backend.add_lora(in->x.view, in->segments, in->out.view);
            };
            return OpInstance{run, [in] { return to_vector(in->out.view); }, in};
          }};
}

}  // namespace

std::vector<OpCase> lora_cases() {
  std::vector<OpCase> cases;
  const LoraShape small[] = {
      {.rows = 1, .rank = 1, .k = 5, .columns = 3},
      {.rows = 5, .adapters = 2, .rank = 8, .k = 1030, .columns = 40},
      {.rows = 70, .rows_each = 33, .adapters = 2, .rank = 33, .k = 40, .columns = 100},
      {.rows = 150, .rows_each = 150, .rank = 3, .k = 2050, .columns = 7}};
  for (const WeightType& type : weight_types()) {
    if (type.groups) continue;
    for (const LoraShape& shape : small) {
      // Roundings of the inner product to bfloat16 may differ from the reference's.
      if (type.dtype == DType::bf16 && shape.k > 5) continue;
      cases.push_back(lora_case(type, shape, CaseSize::small));
    }
  }
  for (const int64_t rank : {8, 16, 64}) {
    for (const auto& [k, columns] : {std::pair{2048, 2048}, {2048, 8192}, {8192, 2048}}) {
      for (const auto& [rows, rows_each] : {std::pair{16, 2}, {512, 64}}) {
        cases.push_back(lora_case(kLargeType,
                                  {.rows = rows,
                                   .rows_each = rows_each,
                                   .adapters = 8,
                                   .rank = rank,
                                   .k = k,
                                   .columns = columns},
                                  CaseSize::large));
      }
    }
  }
  return cases;
}

}  // namespace paceline
