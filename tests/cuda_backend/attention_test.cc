// Attention by matrix instructions against its rule in plain loops, and the bits of each sequence
// alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/dtype.h"
#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/same_bits.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kChunk = 128;

double rounded(double value) { return double{to_float(to_bfloat16(static_cast<float>(value)))}; }

// Rows of one slice, by the numerics rule (docs/gpu.md) in double: queries and the weights of a
// chunk are rounded to bfloat16.
class PlainAttention {
 public:
  explicit PlainAttention(const AttentionInputs& in)
      : shape_(in.shape), store_(in.store()), elements_(in.stored.elements()) {}

  struct Result {
    std::vector<double> values;
    double log_sum_exp = 0.0;
  };

  // Of a query at `position`, among the slice's num_keys.
  Result attend(const float* query, int64_t position, int64_t num_keys, int64_t head,
                std::span<const int32_t> table) const {
    const AttentionParams& params = shape_.params;
    const int64_t window = params.window;
    const int64_t first = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
    int64_t end = params.bidirectional ? num_keys : position + 1;
    if (window > 0) end = std::min(end, position + window);
    const auto dims = static_cast<size_t>(shape_.head_dim);
    double max = -HUGE_VAL, sum = 0.0;
    std::vector<double> values(dims);
    for (int64_t chunk = first / kChunk; chunk * kChunk < end; ++chunk) {
      const int64_t from = std::max(first, chunk * kChunk),
                    to = std::min(end, (chunk + 1) * kChunk);
      std::vector<double> scores;
      for (int64_t i = from; i < to; ++i) scores.push_back(score(query, i, head, table));
      const double top = *std::ranges::max_element(scores);
      const double old_share = std::exp(max - std::max(max, top));
      const double new_share = std::exp(top - std::max(max, top));
      sum *= old_share;
      for (double& value : values) value *= old_share;
      for (int64_t i = from; i < to; ++i) {
        const double weight = std::exp(scores[static_cast<size_t>(i - from)] - top);
        sum += weight * new_share;
        add_value(weight, new_share, i, head, table, values);
      }
      max = std::max(max, top);
    }
    for (double& value : values) value /= sum;
    return {std::move(values), std::log(sum) + max};
  }

 private:
  // The place of a position and kv head among [num_blocks, kv_heads, block_size].
  int64_t slot(int64_t position, int64_t head, std::span<const int32_t> table) const {
    const int64_t size = shape_.block_size, kv_head = head / (shape_.heads / shape_.kv_heads);
    const int64_t block = table[static_cast<size_t>(position / size)];
    return (block * shape_.kv_heads + kv_head) * size + position % size;
  }

  double score(const float* query, int64_t position, int64_t head,
               std::span<const int32_t> table) const {
    const int64_t size = shape_.block_size, place = slot(position, head, table);
    double dot = 0.0;
    for (int64_t d = 0; d < shape_.head_dim; ++d) {
      const int64_t key = (place / size * shape_.head_dim + d) * size + place % size;
      dot += rounded(query[d]) * double{elements_[static_cast<size_t>(key)]};
    }
    const double scaled = dot * double{shape_.params.scale}, cap = shape_.params.soft_cap;
    return cap > 0.0 ? cap * std::tanh(scaled / cap) : scaled;
  }

  void add_value(double weight, double share, int64_t position, int64_t head,
                 std::span<const int32_t> table, std::vector<double>& values) const {
    const int64_t place = slot(position, head, table);
    const double scale =
        store_.has_scales() ? double{store_.value_scales.elements<float>()[place]} : 1.0;
    const double factor = rounded(weight * scale) / scale * share;
    const float* const value =
        elements_.data() + elements_.size() / 2 + static_cast<size_t>(place * shape_.head_dim);
    for (size_t d = 0; d < values.size(); ++d) values[d] += factor * double{value[d]};
  }

  const AttentionShape& shape_;
  KvStore store_;
  std::vector<float> elements_;
};

// Weights that round the other way as float32 has other last places differ by 2^-8 of themselves:
// few do.
void expect_by_the_rule(const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp) {
  const PlainAttention plain(in);
  double squares = 0.0, largest = 0.0, largest_log = 0.0;
  for (const AttentionSlice& slice : in.slices) {
    for (int64_t i = 0; i < slice.num_rows; ++i) {
      const int64_t row = slice.first_row + i;
      for (int64_t head = 0; head < in.shape.heads; ++head) {
        const auto offset = static_cast<size_t>(head * in.shape.head_dim);
        const PlainAttention::Result expected =
            plain.attend(in.q.view.row<float>(row) + offset, slice.first_position + i,
                         slice.first_position + slice.num_rows, head, slice.block_table);
        for (size_t d = 0; d < expected.values.size(); ++d) {
          const double error =
              std::abs(double{out.row<float>(row)[offset + d]} - expected.values[d]);
          squares += error * error;
          largest = std::max(largest, std::isnan(error) ? HUGE_VAL : error);
        }
        const double log = log_sum_exp.row<float>(row)[head];
        largest_log = std::max(largest_log, std::abs(log - expected.log_sum_exp));
      }
    }
  }
  EXPECT_LE(std::sqrt(squares / static_cast<double>(out.num_elements())), 5e-5) << in.shape.name();
  EXPECT_LE(largest, 1e-2) << in.shape.name();
  EXPECT_LE(largest_log, 2e-5) << in.shape.name();
}

struct Outputs {
  Outputs(Memory& memory, const AttentionInputs& in)
      : out(allocate_tensor(memory, DType::f32, in.q.view.shape())),
        log_sum_exp(allocate_tensor(memory, DType::f32, {in.q.view.size(0), in.q.view.size(1)})) {}
  OwnedTensor out, log_sum_exp;
};

// Each slice alone has the bits that it has among the others.
void expect_alone(EmulatedBackend& cuda, const AttentionInputs& in, const Outputs& together) {
  const Outputs alone(cuda->memory(), in);
  for (const AttentionSlice& slice : in.slices) {
    cuda->attention(in.q.view, in.store(), std::span(&slice, 1), in.shape.params, alone.out.view,
                    &alone.log_sum_exp.view);
  }
  EXPECT_EQ(to_vector(alone.out.view), to_vector(together.out.view)) << in.shape.name();
  EXPECT_EQ(to_vector(alone.log_sum_exp.view), to_vector(together.log_sum_exp.view));
}

void expect_attention(EmulatedBackend& cuda, AttentionShape shape) {
  shape.params.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  const AttentionInputs in(shape, 1, 2, cuda->memory());
  const Outputs outputs(cuda->memory(), in);
  cuda->attention(in.q.view, in.store(), in.slices, in.shape.params, outputs.out.view,
                  &outputs.log_sum_exp.view);
  expect_by_the_rule(in, outputs.out.view, outputs.log_sum_exp.view);
  expect_alone(cuda, in, outputs);
}

// Decoded rows, and prompts from the beginning and from the middle of a block and a chunk on.
const std::vector<SliceShape> kSlices = {{0, 1},  {130, 1}, {60, 39}, {63, 1},
                                         {64, 2}, {0, 5},   {120, 15}};

TEST(CudaAttention, FollowsItsRule) {
  EmulatedBackend cuda({.num_threads = 2});
  for (const DType dtype : {DType::bf16, DType::i8}) {
    for (const int64_t head_dim : {16, 64, 80, 128, 192, 256}) {
      const int64_t group = 1 + head_dim / 16 % 5;
      expect_attention(cuda, {.heads = 2 * group,
                              .kv_heads = 2,
                              .head_dim = head_dim,
                              .dtype = dtype,
                              .slices = kSlices});
    }
  }
}

TEST(CudaAttention, FollowsItsRuleWithWindowsAndCaps) {
  EmulatedBackend cuda;
  for (const DType dtype : {DType::bf16, DType::i8}) {
    for (const int64_t window : {1, 2, 50, 64, 100}) {
      AttentionShape shape{.heads = 3, .kv_heads = 1, .dtype = dtype, .slices = kSlices};
      shape.params.window = window;
      shape.params.soft_cap = window % 4 == 0 ? 3.0f : 0.0f;
      expect_attention(cuda, shape);
      shape.params.bidirectional = true;
      shape.slices = {{0, 1}, {0, 90}, {0, 3}};
      expect_attention(cuda, shape);
    }
  }
}

// Tiles of warpgroups have the bits of those of warps, which GPUs with less shared memory have.
TEST(CudaAttention, WarpgroupsHaveTheBitsOfWarps) {
  EmulatedBackend groups({.num_threads = 2});
  EmulatedBackend warps({.num_threads = 2, .shared_bytes = 99 * 1024});
  const auto expect_same = [&](AttentionShape shape) {
    shape.params.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    const auto attend = [&](EmulatedBackend& cuda) {
      const AttentionInputs in(shape, 1, 2, cuda->memory());
      const Outputs outputs(cuda->memory(), in);
      cuda->attention(in.q.view, in.store(), in.slices, shape.params, outputs.out.view,
                      &outputs.log_sum_exp.view);
      std::vector<float> all = to_vector(outputs.out.view);
      const std::vector<float> sums = to_vector(outputs.log_sum_exp.view);
      all.insert(all.end(), sums.begin(), sums.end());
      return all;
    };
    EXPECT_SAME_BITS(attend(groups), attend(warps)) << shape.name();
  };
  for (const int64_t head_dim : {16, 64, 80, 128, 192, 256}) {
    for (const DType dtype : {DType::bf16, DType::i8}) {
      expect_same({.heads = 4,
                   .kv_heads = head_dim == 64 ? 2 : 1,
                   .head_dim = head_dim,
                   .dtype = dtype,
                   .slices = {{0, 70}, {250, 40}, {40, 9}}});
    }
  }
  for (const int64_t window : {1, 40, 128, 200}) {
    AttentionShape shape{.heads = 3, .kv_heads = 1, .dtype = DType::bf16};
    if (window == 128) shape.dtype = DType::i8;
    shape.block_size = window == 40 ? 8 : 32;
    shape.slices = {{0, 150}, {300, 20}};
    shape.params.window = window;
    shape.params.soft_cap = window == 200 ? 3.0f : 0.0f;
    expect_same(shape);
    shape.slices = {{0, 150}};
    shape.params.bidirectional = true;
    expect_same(shape);
  }
}

// More heads than a tile has rows, and blocks of every size that is a power of two.
TEST(CudaAttention, FollowsItsRuleForManyHeadsAndAllBlocks) {
  EmulatedBackend cuda;
  int64_t heads = 40;
  for (const int64_t block_size : {8, 16, 32, 64, 128}) {
    for (const DType dtype : {DType::bf16, DType::i8}) {
      expect_attention(cuda, {.heads = heads,
                              .kv_heads = heads == 40 ? 2 : 1,
                              .head_dim = 32,
                              .block_size = block_size,
                              .dtype = block_size < 16 ? DType::bf16 : dtype,
                              .slices = kSlices});
      heads = 4;
    }
  }
}

// Results of chunks that don't fit a share of the device's memory are computed and merged in turn.
TEST(CudaAttention, HasTheSameBitsWithLittleMemory) {
  EmulatedBackend large({.num_threads = 4});
  EmulatedBackend small({.num_threads = 4, .total_bytes = size_t{4} << 20});
  for (const DType dtype : {DType::bf16, DType::i8}) {
    const AttentionShape shape{.kv_heads = 1,
                               .dtype = dtype,
                               .params = {.scale = 0.2f},
                               .slices = {{100, 30}, {700, 4}, {0, 40}, {1000, 3}, {300, 4}}};
    const auto attend = [&](EmulatedBackend& cuda) {
      const AttentionInputs in(shape, 1, 2, cuda->memory());
      const Outputs outputs(cuda->memory(), in);
      cuda->attention(in.q.view, in.store(), in.slices, shape.params, outputs.out.view,
                      &outputs.log_sum_exp.view);
      std::vector<float> all = to_vector(outputs.out.view);
      const std::vector<float> sums = to_vector(outputs.log_sum_exp.view);
      all.insert(all.end(), sums.begin(), sums.end());
      return all;
    };
    EXPECT_SAME_BITS(attend(large), attend(small));
  }
}

// The decoder has the values take the queries' place. Heads of more than 128 have two blocks for
// each tile.
TEST(CudaAttention, InPlaceItHasTheBitsOfAnOutputApart) {
  for (const ThreadOrder order : {ThreadOrder::ascending, ThreadOrder::descending}) {
    EmulatedBackend cuda({.order = order});
    for (const DType dtype : {DType::bf16, DType::i8}) {
      for (const int64_t head_dim : {128, 144, 256}) {
        const AttentionShape shape{.heads = 4,
                                   .kv_heads = 1,
                                   .head_dim = head_dim,
                                   .dtype = dtype,
                                   .params = {.scale = 0.1f},
                                   .slices = {{0, 70}, {0, 1}, {40, 3}, {50, 1}}};
        const AttentionInputs in(shape, 1, 2, cuda->memory());
        const OwnedTensor out = allocate_tensor(cuda->memory(), DType::f32, in.q.view.shape());
        cuda->attention(in.q.view, in.store(), in.slices, shape.params, out.view);
        const std::vector<float> expected = to_vector(out.view);
        cuda->attention(in.q.view, in.store(), in.slices, shape.params, in.q.view);
        EXPECT_SAME_BITS(to_vector(in.q.view), expected) << shape.name();
      }
    }
  }
}

}  // namespace
}  // namespace paceline::cuda
