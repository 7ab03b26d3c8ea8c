// Products with adapters' pairs on the CUDA backend have the bits of two products and an add, in
// any order of threads, and so the bits that a row has alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "tests/cuda/every_order.h"
#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/lora_one_by_one.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/same_bits.h"
#include "tests/test_scale.h"

namespace paceline::cuda {
namespace {

struct Shape {
  int64_t rows = 0;
  int64_t k = 0;
  int64_t columns = 0;
};

// Segments of random pairs, in the backend's memory.
class RandomSegments {
 public:
  RandomSegments(EmulatedBackend& backend, const Shape& shape, uint64_t seed)
      : backend_(backend), shape_(shape), draws_(seed) {
    Memory& memory = backend->memory();
    x = random_tensor(memory, DType::f32, {shape.rows, shape.k}, seed, 0.2f);
    before_ = random_tensor(memory, DType::f32, {shape.rows, shape.columns}, seed + 1);
    out_ = allocate_tensor(memory, DType::f32, {shape.rows, shape.columns});
  }

  // Rows in turn, with gaps; some share a matrix `a`, some have a whole one to themselves.
  void draw(int64_t most_rows) {
    for (int64_t row = draws_.below(3); row < shape_.rows;) {
      const int64_t rows = std::min(1 + draws_.below(most_rows), shape_.rows - row);
      add_rows(row, rows);
      row += rows + draws_.below(4);
    }
  }

  std::vector<float> added(std::span<const LoraSegment> some) {
    copy_elements(before_.view, out_.view);
    backend_->add_lora(x.view, some, out_.view);
    return to_vector(out_.view);
  }

  std::vector<float> by_steps() {
    copy_elements(before_.view, out_.view);
    Memory& memory = backend_->memory();
    for (const LoraSegment& segment : segments) {
      const int64_t rows = segment.num_rows, last = segment.first_row + rows;
      const OwnedTensor inner = allocate_tensor(memory, DType::f32, {rows, segment.a->n});
      const OwnedTensor delta = allocate_tensor(memory, DType::f32, {rows, segment.b->n});
      backend_->matmul(x.view.slice(0, segment.first_row, last), *segment.a, nullptr, inner.view);
      const int64_t rank = segment.first_rank;
      backend_->matmul(inner.view.slice(1, rank, rank + segment.b->k), *segment.b, nullptr,
                       delta.view);
      const Tensor sums = out_.view.slice(0, segment.first_row, last)
                              .slice(1, segment.first_column, segment.first_column + segment.b->n);
      backend_->add(sums, delta.view, sums);
    }
    return to_vector(out_.view);
  }

  OwnedTensor x;
  std::vector<LoraSegment> segments;

 private:
  DType random_type() {
    const DType types[] = {DType::f32, DType::f16, DType::bf16, DType::bf16};
    return types[draws_.below(4)];
  }
  const PackedMatrix* matrix(int64_t n, int64_t k) {
    matrices_.push_back(std::make_unique<PackedMatrix>(random_matrix(
        backend_->memory(), backend_.threads, random_type(), n, k, ++num_matrices_ + 100)));
    return matrices_.back().get();
  }
  void add_rows(int64_t row, int64_t rows) {
    const PackedMatrix* a = nullptr;
    int64_t next_rank = 0;
    for (int64_t column = draws_.below(20); column < shape_.columns;) {
      const int64_t columns = std::min(1 + draws_.below(140), shape_.columns - column);
      if (a == nullptr || draws_.below(3) == 0) {
        a = matrix(3 + draws_.below(70), shape_.k);
        next_rank = 0;
      }
      const int64_t rank = 1 + draws_.below(a->n - next_rank);
      segments.push_back({row, rows, a, next_rank, matrix(columns, rank), column});
      next_rank = rank + next_rank < a->n ? next_rank + rank : 0;
      column += columns + draws_.below(60);
    }
  }

  EmulatedBackend& backend_;
  Shape shape_;
  Draws draws_;
  OwnedTensor before_, out_;
  std::vector<std::unique_ptr<PackedMatrix>> matrices_;
  uint64_t num_matrices_ = 0;
};

TEST(CudaLora, HasTheBitsOfItsSteps) {
  EmulatedBackend backend({.num_threads = 2});
  const Shape shapes[] = {{1, 5, 3}, {9, 1100, 200}, {40, 70, 130}, {23, 2049, 90}};
  for (const Shape& shape : shapes) {
    for (int round = 0; round < scaled(2, 40); ++round) {
      RandomSegments some(backend, shape, static_cast<uint64_t>(round));
      some.draw(11);
      if (some.segments.empty()) continue;
      EXPECT_SAME_BITS(some.by_steps(), some.added(some.segments))
          << shape.rows << " rows of " << shape.k;
    }
  }
}

// Those of many rows have kernels of their own, and the tables of the others begin anew.
TEST(CudaLora, HasTheBitsOfItsStepsInManyRows) {
  EmulatedBackend backend({.num_threads = 2});
  RandomSegments some(backend, {700, 40, 40}, 3);
  some.draw(130);
  EXPECT_SAME_BITS(some.by_steps(), some.added(some.segments));
}

TEST(CudaLora, EachSegmentHasTheBitsItHasAlone) {
  EmulatedBackend backend({.num_threads = 2});
  RandomSegments some(backend, {20, 300, 150}, 4);
  some.draw(7);
  const auto add = [&](std::span<const LoraSegment> segments) { return some.added(segments); };
  EXPECT_SAME_BITS(added_one_by_one(some.segments, some.added({}), 150, add),
                   some.added(some.segments));
}

// Also where it stands behind the last of an odd number of inputs of the row before.
TEST(CudaLora, KeepsWhatIsNotFiniteToItsRow) {
  EmulatedBackend backend;
  constexpr int64_t kRows = 6, kInputs = 41, kColumns = 90;
  for (const uint64_t seed : {5u, 6u, 7u}) {
    RandomSegments some(backend, {kRows, kInputs, kColumns}, seed);
    some.draw(6);
    const std::vector<float> finite = some.added(some.segments);
    bool is_spoilt = false;
    for (int64_t row = 0; row < kRows; ++row) {
      float& first = some.x.view.row<float>(row)[0];
      const float kept = std::exchange(first, std::numeric_limits<float>::infinity());
      const std::vector<float> spoilt = some.added(some.segments);
      first = kept;
      for (size_t i = 0; i < finite.size(); ++i) {
        if (static_cast<int64_t>(i) / kColumns == row) {
          is_spoilt |= !std::isfinite(spoilt[i]);
        } else {
          ASSERT_EQ(finite[i], spoilt[i]) << i;
        }
      }
    }
    EXPECT_TRUE(is_spoilt);
  }
}

// Two adapters of both types, whose inputs are loaded in several parts.
std::vector<std::byte> add_pairs(CudaDevice& device) {
  constexpr int64_t kRows = 3, kInputs = 1300, kColumns = 40, kRank = 20;
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  Memory memory;
  const auto pack = [&](DType dtype, int64_t n, int64_t k, uint64_t seed) {
    const OwnedTensor weights = random_tensor(memory, DType::f32, {n, k}, seed);
    return backend->pack_matrix(std::span(&weights.view, 1), dtype);
  };
  const PackedMatrix a = pack(DType::bf16, kRank, kInputs, 1), c = pack(DType::f32, 9, kInputs, 2);
  const PackedMatrix b = pack(DType::bf16, kColumns, kRank, 3), d = pack(DType::f32, 30, 9, 4);
  const PackedMatrix e = pack(DType::bf16, 30, 7, 5);
  const auto tensor = [&](int64_t rows, int64_t width, uint64_t seed) {
    const OwnedTensor made = random_tensor(memory, DType::f32, {rows, width}, seed);
    OwnedTensor there = allocate_tensor(backend->memory(), DType::f32, {rows, width});
    backend->write({made.view.elements<float>(), static_cast<size_t>(rows * width)}, there.view);
    return there;
  };
  const OwnedTensor x = tensor(kRows, kInputs, 6), out = tensor(kRows, 2 * kColumns, 7);
  const LoraSegment segments[] = {
      {0, 2, &a, 0, &b, 0}, {2, 1, &c, 0, &d, 5}, {2, 1, &c, 1, &e, 40}};
  backend->add_lora(x.view, segments, out.view);
  std::vector<float> staging;
  const auto bytes = std::as_bytes(backend->read(out.view, staging));
  return {bytes.begin(), bytes.end()};
}

TEST(CudaLora, IsTheSameInEveryOrderAndNeedsItsBarriers) {
  EXPECT_FALSE(testing::same_in_every_order(add_pairs).empty());
  EXPECT_THAT(testing::needless_syncs(add_pairs), ::testing::IsEmpty());
}

}  // namespace
}  // namespace paceline::cuda
