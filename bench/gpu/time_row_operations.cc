#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "bench/gpu/kernel_timer.h"
#include "bench/gpu/model_shapes.h"
#include "tensor/tensor.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

// Operations on [rows, width] that read two tensors and write one, which take turns.
struct RowTurn {
  RowTurn(Memory& memory, int64_t rows, int64_t width)
      : x(allocate_tensor(memory, DType::f32, {rows, width})),
        y(allocate_tensor(memory, DType::f32, {rows, width})),
        out(allocate_tensor(memory, DType::f32, {rows, width})) {}
  OwnedTensor x, y, out;
};

void time_rows(KernelTimer& timer, const ModelShape& shape, int64_t rows, int64_t width) {
  const double tensor_bytes = 4.0 * static_cast<double>(rows * width);
  std::vector<RowTurn> turns;
  const int64_t count = timer.num_rotated(3 * tensor_bytes);
  for (int64_t i = 0; i < count; ++i) turns.emplace_back(timer.memory(), rows, width);
  const OwnedTensor weight = allocate_tensor(timer.memory(), DType::f32, {width});
  const auto name = [&](std::string_view operation) {
    return fmt::format("{} {} {} x {}", shape.name, operation, rows, width);
  };
  const auto turn = [&](int64_t i) -> const RowTurn& {
    return turns[static_cast<size_t>(i % count)];
  };
  timer.time(name("rms_norm"), {.bytes = 2 * tensor_bytes}, [&](int64_t i) {
    timer.backend().rms_norm(turn(i).x.view, weight.view, 1e-5f, turn(i).out.view);
  });
  timer.time(name("add"), {.bytes = 3 * tensor_bytes}, [&](int64_t i) {
    timer.backend().add(turn(i).x.view, turn(i).y.view, turn(i).out.view);
  });
  timer.time(name("add_rms_norm"), {.bytes = 4 * tensor_bytes}, [&](int64_t i) {
    timer.backend().add_rms_norm(turn(i).x.view, turn(i).y.view, nullptr, {weight.view, 1e-5f},
                                 turn(i).out.view);
  });
  timer.time(name("gated_activation"), {.bytes = 3 * tensor_bytes}, [&](int64_t i) {
    timer.backend().gated_activation(Activation::silu, turn(i).x.view, turn(i).y.view,
                                     turn(i).out.view);
  });
}

// Heads of queries, keys and values, which take turns, and a store of bfloat16.
struct HeadTurn {
  HeadTurn(Memory& memory, const ModelShape& shape, int64_t rows)
      : q(allocate_tensor(memory, DType::f32, {rows, shape.heads, shape.head_dim})),
        k(allocate_tensor(memory, DType::f32, {rows, shape.kv_heads, shape.head_dim})),
        v(allocate_tensor(memory, DType::f32, {rows, shape.kv_heads, shape.head_dim})),
        stored(memory, DType::bf16, (rows + kBlockSize - 1) / kBlockSize, shape.kv_heads,
               shape.head_dim, kBlockSize) {}
  static constexpr int64_t kBlockSize = 16;
  OwnedTensor q, k, v;
  OwnedStore stored;
};

void time_placed_heads(KernelTimer& timer, const ModelShape& shape, int64_t rows) {
  const int64_t half = shape.head_dim / 2;
  const OwnedTensor table = allocate_tensor(timer.memory(), DType::f32, {rows, half, 2});
  const OwnedTensor weight = allocate_tensor(timer.memory(), DType::f32, {shape.head_dim});
  const RmsNormWeights norm{weight.view, 1e-5f};
  std::vector<int64_t> slots(static_cast<size_t>(rows));
  std::iota(slots.begin(), slots.end(), 0);
  // Of a row: queries are read and written, keys and values read as float32 and written as
  // bfloat16, and the table is read.
  const int64_t row_bytes =
      (8 * shape.heads + 2 * (4 + 2) * shape.kv_heads) * shape.head_dim + 8 * half;
  const double bytes = static_cast<double>(rows * row_bytes);
  std::vector<HeadTurn> turns;
  const int64_t count = timer.num_rotated(bytes);
  for (int64_t i = 0; i < count; ++i) turns.emplace_back(timer.memory(), shape, rows);
  timer.time(
      fmt::format("{} place_heads {} rows", shape.name, rows), {.bytes = bytes}, [&](int64_t i) {
        const HeadTurn& turn = turns[static_cast<size_t>(i % count)];
        timer.backend().place_heads({.q_norm = norm, .k_norm = norm, .rope_table = &table.view},
                                    turn.q.view, turn.k.view, turn.v.view, slots,
                                    turn.stored.view());
      });
}

void time_rows_of(KernelTimer& timer, const ModelShape& shape, int64_t rows) {
  if (!timer.is_over()) time_rows(timer, shape, rows, shape.hidden);
  if (!timer.is_over()) time_placed_heads(timer, shape, rows);
}

}  // namespace

void time_row_operations(KernelTimer& timer) {
  if (timer.is_small()) return time_rows_of(timer, kSmallShape, 3);
  for (const ModelShape& shape : kMeasuredShapes) {
    time_rows_of(timer, shape, 1);
    time_rows_of(timer, shape, 2048);
  }
}

}  // namespace paceline
