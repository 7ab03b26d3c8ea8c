// Products with the adapters of a batch have the bits of each segment's own products.
#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/lora_one_by_one.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

// A segment before its matrices are made.
struct Wanted {
  int64_t first_row;
  int64_t num_rows;
  int64_t first_rank;
  int64_t rank;
  int64_t first_column;
  int64_t columns;
  DType a_dtype = DType::bf16;
  DType b_dtype = DType::bf16;
  bool stacks = false;  // its A is the one before it
};

class LoraOp : public IsaTest {
 protected:
  static constexpr int64_t kRows = 97;
  static constexpr int64_t kOutputs = 700;

  void make(const std::vector<Wanted>& wanted, int64_t k) {
    segments.clear();
    matrices.clear();
    matrices.reserve(2 * wanted.size());
    x = random_tensor(memory_, DType::f32, {kRows, k}, 1);
    before = random_tensor(memory_, DType::f32, {kRows, kOutputs}, 2);
    for (const Wanted& one : wanted) {
      const uint64_t seed = 3 + 2 * segments.size();
      const PackedMatrix* a = one.stacks ? segments.back().a : nullptr;
      if (a == nullptr) {
        a = &matrices.emplace_back(random_matrix(memory_, threads(), one.a_dtype,
                                                 one.first_rank + one.rank + 40, k, seed));
      }
      const PackedMatrix* const b = &matrices.emplace_back(
          random_matrix(memory_, threads(), one.b_dtype, one.columns, one.rank, seed + 1));
      segments.push_back({one.first_row, one.num_rows, a, one.first_rank, b, one.first_column});
    }
  }

  std::vector<float> added(Backend& backend, std::span<const LoraSegment> some) {
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, before.view.shape());
    copy_elements(before.view, out.view);
    backend.add_lora(x.view, some, out.view);
    return to_vector(out.view);
  }

  // Two products and a sum for each segment.
  std::vector<float> by_steps() {
    const OwnedTensor out = allocate_tensor(memory_, DType::f32, before.view.shape());
    copy_elements(before.view, out.view);
    for (const LoraSegment& segment : segments) {
      const int64_t rows = segment.num_rows, last = segment.first_row + rows;
      const OwnedTensor inner = allocate_tensor(memory_, DType::f32, {rows, segment.a->n});
      const OwnedTensor delta = allocate_tensor(memory_, DType::f32, {rows, segment.b->n});
      backend().matmul(x.view.slice(0, segment.first_row, last), *segment.a, nullptr, inner.view);
      const int64_t rank = segment.first_rank;
      backend().matmul(inner.view.slice(1, rank, rank + segment.b->k), *segment.b, nullptr,
                       delta.view);
      const Tensor sums = out.view.slice(0, segment.first_row, last)
                              .slice(1, segment.first_column, segment.first_column + segment.b->n);
      backend().add(sums, delta.view, sums);
    }
    return to_vector(out.view);
  }

  void expect_same_bits() {
    const std::vector<float> expected = by_steps();
    for (const auto& backend : backends()) {
      EXPECT_SAME_BITS(expected, added(*backend, segments));
    }
  }

  OwnedTensor x, before;
  std::vector<PackedMatrix> matrices;
  std::vector<LoraSegment> segments;
};

TEST_P(LoraOp, HasTheBitsOfItsSteps) {
  const std::vector<Wanted> mixed = {
      {0, 1, 0, 8, 0, 300},
      {0, 1, 8, 8, 300, 33, DType::bf16, DType::f32, true},
      {0, 1, 40, 3, 640, 60, DType::bf16, DType::bf16, true},
      {1, 2, 0, 64, 7, 129, DType::f32, DType::f32},
      {3, 20, 5, 16, 100, 64, DType::f16, DType::bf16},
      {24, 73, 0, 100, 31, 600, DType::bf16, DType::bf16},  // no segment has row 23
  };
  for (const int64_t k : {1, 63, 1500, 2048}) {
    make(mixed, k);
    expect_same_bits();
  }
  make({{0, kRows, 0, kSegmentLength, 0, 40, DType::f32, DType::f32}}, 24);
  expect_same_bits();
}

// Segments see nothing of each other, and change only their own rows and columns.
TEST_P(LoraOp, EachSegmentHasTheBitsItHasAlone) {
  const int rounds = runs_fewer_cases() ? 2 : 5;
  for (int round = 0; round < rounds; ++round) {
    Draws draws(static_cast<uint64_t>(round));
    std::vector<Wanted> wanted;
    for (int64_t row = draws.below(3); row < kRows;) {
      const int64_t rows = std::min(1 + draws.below(row % 2 == 0 ? 40 : 3), kRows - row);
      for (int64_t column = draws.below(90); column < kOutputs;) {
        const int64_t columns = std::min(1 + draws.below(400), kOutputs - column);
        const DType dtype = draws.below(2) == 0 ? DType::f32 : DType::bf16;
        wanted.push_back({row, rows, draws.below(9), 1 + draws.below(31), column, columns, dtype,
                          dtype, !wanted.empty() && wanted.back().first_row == row});
        column += columns + draws.below(500);
      }
      row += rows + draws.below(6);
    }
    make(wanted, 1 + draws.below(1300));
    expect_same_bits();
    const std::vector<float> together = added(*backends().back(), segments);
    const auto add = [&](std::span<const LoraSegment> some) { return added(backend(), some); };
    EXPECT_SAME_BITS(added_one_by_one(segments, to_vector(before.view), kOutputs, add), together);
  }
}

TEST_P(LoraOp, KeepsWhatIsNotFiniteToItsRow) {
  make({{0, 3, 0, 8, 0, 300}, {3, 1, 0, 8, 0, 300}}, 100);
  const std::vector<float> finite = added(backend(), segments);
  x.view.row<float>(1)[5] = std::numeric_limits<float>::infinity();
  const std::vector<float> spoilt = added(backend(), segments);
  for (const int64_t row : {0, 2, 3}) {
    for (int64_t column = 0; column < kOutputs; ++column) {
      const auto i = static_cast<size_t>(row * kOutputs + column);
      ASSERT_EQ(finite[i], spoilt[i]) << row << ", " << column;
    }
  }
  EXPECT_FALSE(std::isfinite(spoilt[kOutputs]));
}

PL_TEST_EVERY_ISA(LoraOp);

}  // namespace
}  // namespace paceline
