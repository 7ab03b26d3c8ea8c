#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bench/gpu/kernel_timer.h"
#include "bench/gpu/model_shapes.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

constexpr int64_t kBlockSize = 16;

// Sequences of `length` positions, with blocks of their own in one store.
class StoredSequences {
 public:
  StoredSequences(Memory& memory, const ModelShape& shape, int64_t count, int64_t length)
      : blocks_((length + kBlockSize - 1) / kBlockSize),
        store_(memory, DType::bf16, count * blocks_, shape.kv_heads, shape.head_dim, kBlockSize) {
    for (int64_t i = 0; i < count * blocks_; ++i) ids_.push_back(static_cast<int32_t>(i));
  }

  KvStore store() const { return store_.view(); }
  std::span<const int32_t> table(int64_t sequence) const {
    return std::span(ids_).subspan(static_cast<size_t>(sequence * blocks_),
                                   static_cast<size_t>(blocks_));
  }

 private:
  int64_t blocks_;
  OwnedStore store_;
  std::vector<int32_t> ids_;
};

struct AttentionTensors {
  AttentionTensors(Memory& memory, const ModelShape& shape, int64_t rows)
      : q(allocate_tensor(memory, DType::f32, {rows, shape.heads, shape.head_dim})),
        out(allocate_tensor(memory, DType::f32, {rows, shape.heads, shape.head_dim})) {}
  OwnedTensor q, out;
};

double bytes_of_position(const ModelShape& shape) {
  return static_cast<double>(2 * 2 * shape.kv_heads * shape.head_dim);
}

// What `pairs` pairs of a row and a key compute.
double flops_of(const ModelShape& shape, double pairs) {
  return 4.0 * static_cast<double>(shape.heads * shape.head_dim) * pairs;
}

void time_decode(KernelTimer& timer, const ModelShape& shape, int64_t rows, int64_t context) {
  const double bytes = bytes_of_position(shape) * static_cast<double>(context * rows);
  const int64_t rotated = timer.num_rotated(bytes);
  const StoredSequences stored(timer.memory(), shape, rotated * rows, context);
  const AttentionTensors tensors(timer.memory(), shape, rows);
  std::vector<std::vector<AttentionSlice>> turns(static_cast<size_t>(rotated));
  for (int64_t turn = 0; turn < rotated; ++turn) {
    for (int64_t row = 0; row < rows; ++row) {
      turns[static_cast<size_t>(turn)].push_back(
          {row, 1, context - 1, stored.table(turn * rows + row)});
    }
  }
  const double pairs = static_cast<double>(rows * context);
  timer.time(fmt::format("{} attention, {} rows behind {}", shape.name, rows, context),
             {.bytes = bytes, .flops = flops_of(shape, pairs)}, [&](int64_t i) {
               timer.backend().attention(tensors.q.view, stored.store(),
                                         turns[static_cast<size_t>(i % rotated)], {.scale = 0.1f},
                                         tensors.out.view);
             });
}

// `how` is the end of the name.
void time_prefill(KernelTimer& timer, const ModelShape& shape, int64_t length,
                  std::string_view how = "") {
  const StoredSequences stored(timer.memory(), shape, 1, length);
  const AttentionTensors tensors(timer.memory(), shape, length);
  const AttentionSlice slice{0, length, 0, stored.table(0)};
  const double pairs = static_cast<double>(length) * static_cast<double>(length + 1) / 2;
  timer.time(fmt::format("{} attention, a prompt of {}{}", shape.name, length, how),
             {.bytes = bytes_of_position(shape) * static_cast<double>(length),
              .flops = flops_of(shape, pairs)},
             [&](int64_t) {
               timer.backend().attention(tensors.q.view, stored.store(), std::span(&slice, 1),
                                         {.scale = 0.1f}, tensors.out.view);
             });
}

}  // namespace

void time_attention(KernelTimer& timer) {
  if (timer.is_small()) {
    time_decode(timer, kSmallShape, 2, 40);
    time_prefill(timer, kSmallShape, 40);
    return;
  }
  for (const ModelShape& shape : kMeasuredShapes) {
    for (const int64_t rows : {1, 8, 64, 256}) {
      if (!timer.is_over()) time_decode(timer, shape, rows, 1024);
    }
    for (const int64_t length : {512, 2048, 8192}) {
      if (!timer.is_over()) time_prefill(timer, shape, length);
    }
  }
}

void time_prompt_attention(KernelTimer& timer, std::string_view how) {
  if (timer.is_small()) return time_prefill(timer, kSmallShape, 40, how);
  for (const ModelShape& shape : {kMeasuredShapes[0], kLlama8B}) {
    for (const int64_t length : {512, 2048, 8192}) {
      if (!timer.is_over()) time_prefill(timer, shape, length, how);
    }
  }
}

}  // namespace paceline
