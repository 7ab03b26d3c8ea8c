// Keys and values that a row doesn't see don't reach it, whatever they hold: a token that other
// rows of its tile see may be a rejected draft with a NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/dtype.h"
#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/same_bits.h"

namespace paceline::cuda {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

// A key of NaN and a value of infinities with both signs; codes have scales of NaN.
void spoil(const AttentionInputs& in, const AttentionSlice& slice, int64_t position) {
  const KvStore store = in.store();
  const int64_t size = in.shape.block_size, dims = in.shape.head_dim, offset = position % size;
  const int64_t block = slice.block_table[static_cast<size_t>(position / size)];
  for (int64_t head = 0; head < in.shape.kv_heads; ++head) {
    const int64_t place = block * in.shape.kv_heads + head;
    if (store.has_scales()) {
      store.key_scales.elements<float>()[place * size + offset] = kNaN;
      store.value_scales.elements<float>()[place * size + offset] = kNaN;
      continue;
    }
    with_float_dtype(in.shape.dtype, [&]<class T>() {
      for (int64_t d = 0; d < dims; ++d) {
        store.keys.elements<T>()[(place * dims + d) * size + offset] = from_float<T>(kNaN);
        store.values.elements<T>()[(place * size + offset) * dims + d] =
            from_float<T>(d % 3 == 0 ? -kInfinite : kInfinite);
      }
    });
  }
}

bool sees(const AttentionParams& params, int64_t row_position, int64_t position) {
  const int64_t distance = row_position - position;
  if (distance < 0 && !params.bidirectional) return false;
  return params.window == 0 || std::abs(distance) < params.window;
}

// Of one row: values, then sums.
std::vector<float> results_of(const Tensor& out, const Tensor& log_sum_exp, int64_t row) {
  std::vector<float> all = to_vector(out.slice(0, row, row + 1));
  const std::vector<float> sums = to_vector(log_sum_exp.slice(0, row, row + 1));
  all.insert(all.end(), sums.begin(), sums.end());
  return all;
}

// Rows that don't see the position have their bits of before; the others aren't finite.
void expect_hidden(EmulatedBackend& cuda, const AttentionShape& shape, size_t slice_index,
                   int64_t position) {
  const AttentionInputs in(shape, 1, 2, cuda->memory());
  const OwnedTensor out = allocate_tensor(cuda->memory(), DType::f32, in.q.view.shape());
  const OwnedTensor sums =
      allocate_tensor(cuda->memory(), DType::f32, {in.q.view.size(0), in.q.view.size(1)});
  const auto attend = [&] {
    cuda->attention(in.q.view, in.store(), in.slices, in.shape.params, out.view, &sums.view);
    std::vector<std::vector<float>> rows;
    for (int64_t i = 0; i < out.view.size(0); ++i) {
      rows.push_back(results_of(out.view, sums.view, i));
    }
    return rows;
  };
  const auto before = attend();
  const AttentionSlice& spoilt = in.slices[slice_index];
  spoil(in, spoilt, position);
  const auto after = attend();
  for (int64_t i = 0; i < std::ssize(before); ++i) {
    const int64_t place = i - spoilt.first_row;
    const bool is_in_slice = place >= 0 && place < spoilt.num_rows;
    const auto index = static_cast<size_t>(i);
    if (is_in_slice && sees(shape.params, spoilt.first_position + place, position)) {
      EXPECT_TRUE(std::ranges::none_of(after[index], [](float x) { return std::isfinite(x); }))
          << shape.name() << ", row " << i << " sees position " << position;
    } else {
      EXPECT_SAME_BITS(after[index], before[index])
          << shape.name() << ", row " << i << " doesn't see position " << position;
    }
  }
}

// Rounded to bfloat16 or in codes and with 64, 80 or 192 dimensions by matrix instructions, else
// element by element.
std::vector<AttentionShape> masked_shapes() {
  std::vector<AttentionShape> shapes;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    for (const int64_t head_dim : {20, 64, 80, 192}) {
      const bool has_tiles = dtype == DType::bf16 || dtype == DType::i8;
      if (head_dim > 64 && !has_tiles) continue;
      shapes.push_back({.heads = 3, .kv_heads = 1, .head_dim = head_dim, .dtype = dtype});
      shapes.back().params.scale = 0.1f;
    }
  }
  return shapes;
}

// A decoded row; 4 rows of a draft; a prompt from the middle of a block and a chunk on.
const std::vector<SliceShape> kMaskedSlices = {{70, 1}, {61, 4}, {50, 40}};

TEST(CudaMaskedKeys, LaterKeysReachNoRow) {
  EmulatedBackend cuda({.num_threads = 2});
  for (AttentionShape shape : masked_shapes()) {
    shape.slices = kMaskedSlices;
    expect_hidden(cuda, shape, 1, 62);
    expect_hidden(cuda, shape, 1, 64);
    expect_hidden(cuda, shape, 2, 75);
  }
}

// The chunks of a few rows are computed apart.
TEST(CudaMaskedKeys, LaterKeysReachNoRowOfChunksApart) {
  EmulatedBackend cuda({.num_threads = 2});
  for (AttentionShape shape : masked_shapes()) {
    shape.slices = {{61, 5}};
    expect_hidden(cuda, shape, 0, 63);
    expect_hidden(cuda, shape, 0, 65);
  }
}

TEST(CudaMaskedKeys, KeysBeforeTheWindowReachNoRow) {
  EmulatedBackend cuda({.num_threads = 2});
  for (AttentionShape shape : masked_shapes()) {
    shape.slices = kMaskedSlices;
    shape.params.window = 12;
    expect_hidden(cuda, shape, 1, 52);
    expect_hidden(cuda, shape, 2, 47);
    shape.params.bidirectional = true;
    shape.slices = {{0, 90}, {0, 3}};
    expect_hidden(cuda, shape, 0, 40);
  }
}

}  // namespace
}  // namespace paceline::cuda
