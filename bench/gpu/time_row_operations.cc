#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bench/gpu/kernel_timer.h"
#include "bench/gpu/model_shapes.h"
#include "tensor/tensor.h"

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

}  // namespace

void time_row_operations(KernelTimer& timer) {
  if (timer.is_small()) return time_rows(timer, kSmallShape, 3, 64);
  for (const ModelShape& shape : kMeasuredShapes) {
    if (!timer.is_over()) time_rows(timer, shape, 1, shape.hidden);
    if (!timer.is_over()) time_rows(timer, shape, 2048, shape.hidden);
  }
}

}  // namespace paceline
