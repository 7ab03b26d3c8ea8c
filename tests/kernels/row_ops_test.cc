// Ops on rows: the bits of a row depend on it alone; edge cases of the numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Inputs of all ops; each uses some.
struct Operands {
  Tensor x, y;    // [rows, width]
  Tensor weight;  // [width]
};

using RowOpCall = std::function<void(Backend&, const Operands&, const Tensor& out)>;

std::vector<std::pair<std::string, RowOpCall>> row_op_calls() {
  const auto gate = [](Activation kind) {
    return [kind](Backend& b, const Operands& in, const Tensor& out) {
      b.gated_activation(kind, in.x, in.y, out);
    };
  };
  return {
      {"rms_norm", [](Backend& b, const Operands& in,
                      const Tensor& out) { b.rms_norm(in.x, in.weight, 1e-6f, out); }},
      {"layer_norm",
       [](Backend& b, const Operands& in, const Tensor& out) {
         b.layer_norm(in.x, in.weight, &in.weight, 1e-6f, out);
       }},
      {"activation", [](Backend& b, const Operands& in,
                        const Tensor& out) { b.activation(Activation::gelu_tanh, in.x, out); }},
      {"scale", [](Backend& b, const Operands& in,
                   const Tensor& out) { b.scale(in.x, std::vector<float>{1.7f}, out); }},
      {"silu", gate(Activation::silu)},
      {"gelu_tanh", gate(Activation::gelu_tanh)},
      {"gelu_erf", gate(Activation::gelu_erf)},
      {"relu", gate(Activation::relu)},
      {"clamped_swiglu", gate(Activation::clamped_swiglu)},
      {"add", [](Backend& b, const Operands& in, const Tensor& out) { b.add(in.x, in.y, out); }},
      {"scale_columns", [](Backend& b, const Operands& in,
                           const Tensor& out) { b.scale_columns(in.x, in.weight, out); }},
      {"gaussian_top_k", [](Backend& b, const Operands& in,
                            const Tensor& out) { b.gaussian_top_k(in.x, 0.7f, out); }},
      {"xielu",
       [](Backend& b, const Operands& in, const Tensor& out) {
         b.xielu(in.x, {0.9f, 1.3f, 0.5f, -1e-6f}, out);
       }},
      {"clamp",
       [](Backend& b, const Operands& in, const Tensor& out) { b.clamp(in.x, 0.8f, out); }},
      {"soft_cap",
       [](Backend& b, const Operands& in, const Tensor& out) { b.soft_cap(in.x, 3.0f, out); }},
      {"log_sum_exp",
       [](Backend& b, const Operands& in, const Tensor& out) {
         std::vector<float> sums(static_cast<size_t>(in.x.size(0)));
         b.log_sum_exp(in.x, sums);
         for (int64_t r = 0; r < in.x.size(0); ++r)
           out.row<float>(r)[0] = sums[static_cast<size_t>(r)];
       }},
  };
}

class RowOps : public IsaTest {
 protected:
  Operands operands(int64_t rows, int64_t width) {
    for (const Extents& shape : {Extents{rows, width}, Extents{rows, width}, Extents{width}}) {
      owned_.push_back(random_tensor(memory_, DType::f32, shape, owned_.size(), 4.0f));
    }
    const size_t n = owned_.size();
    return {owned_[n - 3].view, owned_[n - 2].view, owned_[n - 1].view};
  }
  std::vector<float> run(const RowOpCall& op, Backend& backend, const Operands& in) {
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, in.x.shape());
    op(backend, in, out.view);
    return to_vector(out.view);
  }
  Tensor row_of(std::vector<float>& values) {
    return Tensor(values.data(), DType::f32, {1, static_cast<int64_t>(values.size())});
  }
  float log_sum_exp(std::vector<float> values) {
    float out = 0.0f;
    backend().log_sum_exp(row_of(values), std::span(&out, 1));
    return out;
  }

 private:
  std::vector<OwnedTensor> owned_;
};

TEST_P(RowOps, RowsTogetherAloneAndOnAnyThreadsGiveTheSameBits) {
  for (const auto& [rows, width] :
       {std::pair{37, 700}, {3, 1}, {2, 20000}, {300, 70}, {1, 130000}}) {
    const Operands all = operands(rows, width);
    for (const auto& [name, op] : row_op_calls()) {
      const std::vector<float> expected = run(op, backend(), all);
      for (const auto& other : with_more_threads())
        EXPECT_SAME_BITS(run(op, *other, all), expected) << name;
      std::vector<float> alone;
      for (int64_t r = 0; r < rows; ++r) {
        const Operands row = {all.x.slice(0, r, r + 1), all.y.slice(0, r, r + 1), all.weight};
        const std::vector<float> result = run(op, backend(), row);
        alone.insert(alone.end(), result.begin(), result.end());
      }
      EXPECT_SAME_BITS(alone, expected) << name << " " << width;
    }
  }
}

TEST_P(RowOps, StridedAndInPlace) {
  constexpr int64_t kRows = 6, kWidth = 53, kStride = 60;
  const Operands dense = operands(kRows, kWidth);
  for (const auto& [name, op] : row_op_calls()) {
    const std::vector<float> expected = run(op, backend(), dense);
    if (name == "log_sum_exp") continue;
    const OwnedTensor wide = allocate_tensor(memory_, DType::f32, {kRows, kStride});
    std::fill_n(wide.view.elements<float>(), kRows * kStride, kNaN);
    Operands strided = dense;
    strided.x = wide.view.slice(1, 4, 4 + kWidth);
    copy_elements(dense.x, strided.x);
    op(backend(), strided, strided.x);
    EXPECT_SAME_BITS(to_vector(strided.x), expected) << name;
    for (int64_t r = 0; r < kRows; ++r) {
      EXPECT_TRUE(std::isnan(wide.view.row<float>(r)[3]) &&
                  std::isnan(wide.view.row<float>(r)[4 + kWidth]));
    }
  }
}

TEST_P(RowOps, NormOfHeadsIsTheNormOfTheirRows) {
  const OwnedTensor x = random_tensor(memory_, DType::f32, {5, 90}, 1);
  const OwnedTensor weight = random_tensor(memory_, DType::f32, {24}, 2);
  const Tensor heads = x.view.as_strided({5, 3, 24}, {90, 24, 1}, 9);
  const OwnedTensor rows = allocate_tensor(memory_, DType::f32, {15, 24});
  copy_elements(heads, rows.view.reshape({5, 3, 24}));
  backend().rms_norm(rows.view, weight.view, 1e-5f, rows.view);
  backend().rms_norm(heads, weight.view, 1e-5f, heads);
  EXPECT_SAME_BITS(to_vector(heads), to_vector(rows.view));
  backend().layer_norm(rows.view, weight.view, nullptr, 1e-5f, rows.view);
  backend().layer_norm(heads, weight.view, nullptr, 1e-5f, heads);
  EXPECT_SAME_BITS(to_vector(heads), to_vector(rows.view));
}

TEST_P(RowOps, RopeRotatesByTheTableWhateverTheRows) {
  constexpr int64_t kRows = 9, kHeads = 5, kHeadDim = 20, kHalf = 7;
  const OwnedTensor x = random_tensor(memory_, DType::f32, {kRows, kHeads, kHeadDim}, 1);
  const OwnedTensor inv_freq = random_tensor(memory_, DType::f32, {kHalf}, 2);
  const std::vector<int32_t> positions = {0, 1, 5, 1000, 99999, 7, 7, 3, 123456};
  RopePairs pairs = RopePairs::halves;
  const auto rotate = [&](Backend& each, int64_t begin, int64_t end) {
    const OwnedTensor table = allocate_tensor(memory_, DType::f32, {end - begin, kHalf, 2});
    const OwnedTensor rows = allocate_tensor(memory_, DType::f32, {end - begin, kHeads, kHeadDim});
    copy_elements(x.view.slice(0, begin, end), rows.view);
    each.rope_table(
        std::span(positions).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
        inv_freq.view, 1.5f, table.view);
    each.rope(table.view, pairs, rows.view);
    return to_vector(rows.view);
  };
  for (const RopePairs each_pairs : {RopePairs::halves, RopePairs::neighbours}) {
    pairs = each_pairs;
    const std::vector<float> expected = rotate(backend(), 0, kRows);
    for (const auto& other : with_more_threads())
      EXPECT_SAME_BITS(rotate(*other, 0, kRows), expected);
    std::vector<float> alone;
    for (int64_t r = 0; r < kRows; ++r) {
      const std::vector<float> row = rotate(backend(), r, r + 1);
      alone.insert(alone.end(), row.begin(), row.end());
    }
    EXPECT_SAME_BITS(alone, expected);
    // Beyond the rotated part nothing changes.
    for (int64_t i = 2 * kHalf; i < kHeadDim; ++i) {
      EXPECT_EQ(expected[static_cast<size_t>(i)], x.view.elements<float>()[i]);
    }
  }
}

TEST_P(RowOps, LogSumExpAtTheEdges) {
  EXPECT_EQ(log_sum_exp({5.0f}), 5.0f);
  EXPECT_FLOAT_EQ(log_sum_exp({1000.0f, 1000.0f}), 1000.0f + std::log(2.0f));
  EXPECT_EQ(log_sum_exp({-kInfinity, 2.0f}), 2.0f);
  EXPECT_EQ(log_sum_exp({-kInfinity, -kInfinity}), -kInfinity);
  EXPECT_TRUE(std::isnan(log_sum_exp({1.0f, kNaN})));
  // Whole blocks of the row are -infinity.
  std::vector<float> long_row(9000, -kInfinity);
  long_row[8500] = 1.0f;
  EXPECT_EQ(log_sum_exp(long_row), 1.0f);
}

PL_TEST_EVERY_ISA(RowOps);

}  // namespace
}  // namespace paceline
