// The bits of a product depend on its row and its column alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tensor/float8.h"
#include "tests/kernels/every_isa.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

struct Product {
  OwnedTensor x;  // [rows, k]
  OwnedTensor bias;
  PackedMatrix w;
};

// The largest integers that codes and multiples make. The lowest bit of column n selects the least
// or the greatest code, the next bit the least or the greatest multiple.
class ExtremeRows : public GroupedRows {
 public:
  static constexpr float kFactor = 0x1p-12f;

  ExtremeRows(Grouping grouping, int64_t n, int64_t k) : grouping_(grouping), n_(n), k_(k) {}

  static int multiple_of(int64_t n) { return (n & 2) != 0 ? 127 : -128; }
  int code_of(int64_t n) const { return (n & 1) != 0 ? (1 << grouping_.bits) - 1 : 0; }
  double value_of(int64_t n) const {
    const int number = grouping_.zero_point ? code_of(n) - *grouping_.zero_point : code_of(n) + 1;
    return double{kFactor} * multiple_of(n) * number;
  }

  int64_t num_rows() const override { return n_; }
  int64_t row_length() const override { return k_; }
  Grouping grouping() const override { return grouping_; }
  DType value_dtype() const override { return DType::f32; }
  void read_codes(int64_t, std::span<uint8_t>, std::span<float>, std::span<float>) const override {
    FAIL() << "groups share factors";
  }
  void read_multiples(int64_t row, std::span<uint8_t> codes,
                      const ScaleMultiples& multiples) const override {
    std::fill(codes.begin(), codes.end(), static_cast<uint8_t>(code_of(row)));
    for (const auto factors : {multiples.factors, multiples.offset_factors}) {
      std::fill(factors.begin(), factors.end(), kFactor);
    }
    for (const auto of_groups : {multiples.scales, multiples.offsets}) {
      std::fill(of_groups.begin(), of_groups.end(), static_cast<int8_t>(multiple_of(row)));
    }
  }
  void read_values(int64_t row, std::span<float> values) const override {
    std::fill(values.begin(), values.end(), static_cast<float>(value_of(row)));
  }
  std::vector<std::span<const std::byte>> stored_bytes() const override { return {}; }

 private:
  Grouping grouping_;
  int64_t n_;
  int64_t k_;
};

class Matmul : public IsaTest {
 protected:
  // At least k inputs: whole groups of them.
  Product make(const WeightType& type, int64_t rows, int64_t n, int64_t least_k) {
    const int64_t k = type.row_length(least_k);
    return {random_tensor(memory_, DType::f32, {rows, k}, 1),
            random_tensor(memory_, DType::f32, {n}, 2),
            random_matrix(memory_, threads(), type, n, k, 3)};
  }

  // Rows [begin, end) of the product in one call.
  std::vector<float> multiply(Backend& backend, const Product& product, int64_t begin,
                              int64_t end) {
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, {end - begin, product.w.n});
    backend.matmul(product.x.view.slice(0, begin, end), product.w, &product.bias.view, out.view);
    return to_vector(out.view);
  }
  std::vector<float> multiply(Backend& backend, const Product& product) {
    return multiply(backend, product, 0, product.x.view.size(0));
  }

  // Under a sanitizer a fifth of them, others on other instruction sets.
  std::vector<WeightType> types_to_run() const {
    return cases_to_run(weight_types(), static_cast<size_t>(GetParam()), 5);
  }
};

TEST_P(Matmul, AnySplitOfRowsIntoCallsGivesTheSameBits) {
  // More rows than stay in the cache at once, and three segments of K.
  constexpr int64_t kRows = 300;
  for (const WeightType& type : types_to_run()) {
    const Product product = make(type, kRows, 167, 2100);
    const std::vector<float> whole = multiply(backend(), product);
    Draws draws(7);
    for (const int64_t most : cases_to_run<int64_t>({5, 40, 290}, 0, 2)) {
      std::vector<float> parts;
      for (int64_t row = 0; row < kRows;) {
        const int64_t end = std::min(kRows, row + 1 + draws.below(most));
        const std::vector<float> part = multiply(backend(), product, row, end);
        parts.insert(parts.end(), part.begin(), part.end());
        row = end;
      }
      EXPECT_SAME_BITS(whole, parts) << type.name << " in calls of up to " << most;
    }
  }
}

TEST_P(Matmul, RowsInSeveralChunksHaveTheBitsOfRowsInOne) {
  // Tile registers take 512 rows at a time through a segment of K.
  constexpr int64_t kRows = 1100, kPart = 384;
  const Product product = make({.name = "bfloat16"}, kRows, 167, 2100);
  std::vector<float> parts;
  for (int64_t row = 0; row < kRows; row += kPart) {
    const auto part = multiply(backend(), product, row, std::min(row + kPart, kRows));
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_SAME_BITS(multiply(backend(), product), parts);
}

TEST_P(Matmul, EveryNumberOfRowsGivesTheSameBits) {
  // Tiles of every height, then the counts at which other kernels take over.
  std::vector<int64_t> counts(30);
  std::iota(counts.begin(), counts.end(), 1);
  counts.insert(counts.end(), {35, 36, 39, 40, 47, 48, 63, 64});
  for (const WeightType& type : types_to_run()) {
    const Product product = make(type, 65, 96, 1030);
    const std::vector<float> whole = multiply(backend(), product);
    for (const int64_t rows : counts) {
      std::vector<float> first(whole.begin(), whole.begin() + rows * 96);
      EXPECT_SAME_BITS(first, multiply(backend(), product, 0, rows)) << type.name << rows;
    }
  }
}

TEST_P(Matmul, ThreadsChangeNoBit) {
  for (const WeightType& type : types_to_run()) {
    for (const auto& [rows, n, k] : {std::tuple{1, 4000, 100}, {700, 40, 130}, {90, 1000, 64}}) {
      const Product product = make(type, rows, n, k);
      const std::vector<float> one_thread = multiply(backend(), product);
      for (const auto& other : with_more_threads()) {
        EXPECT_SAME_BITS(one_thread, multiply(*other, product)) << type.name << " " << rows;
      }
    }
  }
}

TEST_P(Matmul, StridedRowsAndNothingWrittenBetweenThem) {
  constexpr int64_t kRows = 14, kN = 45, kK = 1280, kXStride = kK + 19, kOutStride = kN + 6;
  for (const WeightType& type : types_to_run()) {
    const Product product = make(type, kRows, kN, kK);
    const OwnedTensor x = random_tensor(memory_, DType::f32, {kRows, kXStride}, 9);
    std::fill_n(x.view.elements<float>(), kRows * kXStride,
                std::numeric_limits<float>::quiet_NaN());
    copy_elements(product.x.view, x.view.slice(1, 3, 3 + kK));
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, {kRows, kOutStride});
    std::fill_n(out.view.elements<float>(), kRows * kOutStride, 77.0f);
    const Tensor columns = out.view.slice(1, 5, 5 + kN);
    backend().matmul(x.view.slice(1, 3, 3 + kK), product.w, &product.bias.view, columns);
    EXPECT_SAME_BITS(to_vector(columns), multiply(backend(), product));
    for (int64_t row = 0; row < kRows; ++row) {
      const float* const elements = out.view.row<float>(row);
      EXPECT_EQ(std::count(elements, elements + 5, 77.0f), 5);
      EXPECT_EQ(elements[5 + kN], 77.0f);
    }
  }
}

TEST_P(Matmul, GatheredColumnsHaveTheBitsOfAllColumns) {
  constexpr int64_t kRows = 5, kN = 203, kK = 1536;
  for (const WeightType& type : types_to_run()) {
    Product product = make(type, kRows, kN, kK);
    const std::vector<float> all = multiply(backend(), product);
    const std::vector<int32_t> columns = {202, 0, 33, 31, 32, 64, 33, 150};
    const auto num_columns = static_cast<int64_t>(columns.size());
    const PackedMatrix gathered = gather_columns(product.w, columns, memory_);
    const OwnedTensor bias = allocate_tensor(memory_, DType::f32, {num_columns});
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, {kRows, num_columns});
    std::vector<float> expected;
    for (int64_t c = 0; c < num_columns; ++c) {
      bias.view.elements<float>()[c] = product.bias.view.elements<float>()[columns[c]];
    }
    for (int64_t r = 0; r < kRows; ++r) {
      for (const int32_t column : columns) expected.push_back(all[r * kN + column]);
    }
    backend().matmul(product.x.view, gathered, &bias.view, out.view);
    EXPECT_SAME_BITS(to_vector(out.view), expected) << type.name;
  }
}

TEST_P(Matmul, NoIntegerIsTooLargeWhereGroupsShareFactors) {
  constexpr int64_t kRows = 48, kN = 36, kK = 1536;  // enough for tiles of any width
  const OwnedTensor x = allocate_tensor(memory_, DType::f32, {kRows, kK});
  for (int64_t row = 0; row < kRows; ++row) {
    std::fill_n(x.view.row<float>(row), kK, row % 2 == 0 ? 1.0f : -1.0f);
  }
  for (const int bits : {4, 6, 8}) {
    for (const int64_t size : {16, 32, 128}) {
      for (const bool has_offsets : {false, true}) {
        Grouping grouping{.bits = bits, .group_size = size, .groups_per_factor = 256 / size};
        if (!has_offsets) grouping.zero_point = 1 << (bits - 1);
        const ExtremeRows rows(grouping, kN, kK);
        const GroupedRows* const part = &rows;
        const PackedMatrix w =
            pack_groups(std::span(&part, 1), ActivationType::int8, memory_, threads());
        const OwnedTensor out = allocate_tensor(memory_, DType::f32, {kRows, kN});
        for (const int64_t count : {int64_t{1}, kRows}) {
          backend().matmul(x.view.slice(0, 0, count), w, nullptr, out.view.slice(0, 0, count));
          for (int64_t i = 0; i < count * kN; ++i) {
            const double sum = rows.value_of(i % kN) * kK * (i / kN % 2 == 0 ? 1.0 : -1.0);
            EXPECT_NEAR(out.view.elements<float>()[i], sum, std::abs(sum) * 1e-6)
                << bits << " bits in groups of " << size << (has_offsets ? " with offsets" : "")
                << ", " << count << " rows, element " << i;
          }
        }
      }
    }
  }
}

// E4M3 of random rows; those of a panel share scales, or have scales of their own, one of them NaN.
class Float8TestRows : public GroupedRows {
 public:
  Float8TestRows(const GroupedRows& random, bool shares_scales)
      : random_(random), shares_scales_(shares_scales) {}
  int64_t num_rows() const override { return random_.num_rows(); }
  int64_t row_length() const override { return random_.row_length(); }
  Grouping grouping() const override { return random_.grouping(); }
  DType value_dtype() const override { return DType::bf16; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override {
    random_.read_codes(row, codes, scales, offsets);
    if (!shares_scales_ && row == 3) codes[1] = 0xFF;
    if (!shares_scales_) return;
    for (size_t g = 0; g < scales.size(); ++g) {
      scales[g] = static_cast<float>(row / kPanelWidth + 1) * (g % 2 == 0 ? 0.0131f : -0.0007f);
    }
  }
  void read_values(int64_t row, std::span<float> values) const override {
    const auto size = static_cast<size_t>(grouping().group_size);
    std::vector<uint8_t> codes(values.size());
    std::vector<float> scales(values.size() / size), offsets(scales.size());
    read_codes(row, codes, scales, offsets);
    const auto& numbers = float8_values(DType::f8_e4m3);
    for (size_t i = 0; i < values.size(); ++i) values[i] = numbers[codes[i]] * scales[i / size];
  }
  std::vector<std::span<const std::byte>> stored_bytes() const override { return {}; }

 private:
  const GroupedRows& random_;
  bool shares_scales_;
};

TEST_P(Matmul, Float8HasTheBitsOfItsNumbersInBfloat16) {
  constexpr int64_t kN = 170, kK = 9 * 128;
  for (const int64_t size : {16, 128}) {
    for (const bool shares_scales : {false, true}) {
      const auto random = random_rows(float8_grouping(size), kN, kK, 5);
      const Float8TestRows rows(*random, shares_scales);
      const OwnedTensor numbers = allocate_tensor(memory_, DType::f32, {kN, kK});
      for (int64_t row = 0; row < kN; ++row) {
        rows.read_values(row, {numbers.view.row<float>(row), static_cast<size_t>(kK)});
      }
      const GroupedRows* const part = &rows;
      const auto with_weights = [&](PackedMatrix w) {
        return Product{random_tensor(memory_, DType::f32, {40, kK}, 1),
                       random_tensor(memory_, DType::f32, {kN}, 2), std::move(w)};
      };
      const Product codes =
          with_weights(backend().pack_groups(std::span(&part, 1), ActivationType::int8));
      const Product plain =
          with_weights(backend().pack_matrix(std::span(&numbers.view, 1), DType::bf16));
      for (const int64_t num_rows : {1, 2, 4, 5, 8, 9, 40}) {
        auto found = multiply(backend(), codes, 0, num_rows);
        auto expected = multiply(backend(), plain, 0, num_rows);
        for (int64_t row = 0; row < num_rows && !shares_scales; ++row) {
          const auto nan = static_cast<size_t>(row * kN + 3);
          EXPECT_TRUE(std::isnan(found[nan]));
          found[nan] = expected[nan] = 0.0f;
        }
        EXPECT_SAME_BITS(found, expected)
            << num_rows << " rows, groups of " << size << (shares_scales ? ", shared scales" : "");
      }
    }
  }
}

TEST_P(Matmul, NaNStaysInItsRow) {
  for (const WeightType& type : types_to_run()) {
    const Product product = make(type, 24, 64, 200);
    std::vector<float> expected = multiply(backend(), product);
    product.x.view.row<float>(7)[100] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> result = multiply(backend(), product);
    EXPECT_TRUE(std::all_of(result.begin() + 7 * 64, result.begin() + 8 * 64,
                            [](float value) { return value != value; }));
    std::fill_n(expected.begin() + 7 * 64, 64, 0.0f);
    std::fill_n(result.begin() + 7 * 64, 64, 0.0f);
    EXPECT_SAME_BITS(result, expected);
  }
}

PL_TEST_EVERY_ISA(Matmul);

}  // namespace
}  // namespace paceline
