#include "kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {
namespace {

constexpr DType kFloatTypes[] = {DType::f32, DType::f16, DType::bf16};

std::vector<float> row_of(const PackedMatrix& matrix, int64_t n) {
  std::vector<float> row(static_cast<size_t>(matrix.k));
  unpack_row(matrix, n, row.data());
  return row;
}

// Row `row` of a tensor, rounded to `dtype`.
std::vector<float> rounded_row(Memory& memory, const Tensor& tensor, int64_t row, DType dtype) {
  const OwnedTensor rounded = allocate_tensor(memory, dtype, {1, tensor.size(1)});
  const OwnedTensor wide = allocate_tensor(memory, DType::f32, {1, tensor.size(1)});
  copy_elements(tensor.slice(0, row, row + 1), rounded.view);
  copy_elements(rounded.view, wide.view);
  return to_vector(wide.view);
}

TEST(PackedMatrix, HoldsThePartsBelowOneAnotherInItsOwnType) {
  Memory memory;
  ThreadPool threads(2);
  for (const DType dtype : kFloatTypes) {
    for (const DType stored : kFloatTypes) {
      const OwnedTensor parts[] = {random_tensor(memory, stored, {33, 67}, 1),
                                   random_tensor(memory, stored, {1, 67}, 2),
                                   random_tensor(memory, stored, {40, 67}, 3)};
      const Tensor views[] = {parts[0].view, parts[1].view, parts[2].view};
      const PackedMatrix matrix = pack_matrix(views, dtype, memory, threads);
      EXPECT_EQ(matrix.n, 74);
      EXPECT_EQ(matrix.k, 67);
      EXPECT_EQ(matrix.num_panels(), 3);
      EXPECT_EQ(row_of(matrix, 0), rounded_row(memory, views[0], 0, dtype));
      EXPECT_EQ(row_of(matrix, 32), rounded_row(memory, views[0], 32, dtype));
      EXPECT_EQ(row_of(matrix, 33), rounded_row(memory, views[1], 0, dtype));
      EXPECT_EQ(row_of(matrix, 34), rounded_row(memory, views[2], 0, dtype));
      EXPECT_EQ(row_of(matrix, 73), rounded_row(memory, views[2], 39, dtype));
    }
  }
}

class PackedOnInstructionSets : public IsaTest {};

TEST_P(PackedOnInstructionSets, OneFloat32PartGivesTheSameBytes) {
  for (const DType dtype : kFloatTypes) {
    for (const auto& [n, k] : {std::pair{1, 1}, {33, 5}, {31, 64}, {70, 67}, {64, 130}}) {
      const OwnedTensor weights = random_tensor(memory_, DType::f32, {n, k + 3}, 1);
      weights.view.row<float>(0)[1] = std::nanf("");
      const Tensor part = weights.view.slice(1, 1, k + 1);
      const PackedMatrix expected = pack_matrix(std::span(&part, 1), dtype, memory_, threads());
      const PackedMatrix found = backend().pack_matrix(std::span(&part, 1), dtype);
      ASSERT_EQ(found.bytes(), expected.bytes());
      EXPECT_EQ(std::memcmp(found.storage.get(), expected.storage.get(),
                            static_cast<size_t>(found.bytes())),
                0)
          << dtype_name(dtype) << " " << n << " " << k;
    }
  }
}

PL_TEST_EVERY_ISA(PackedOnInstructionSets);

TEST(PackedMatrix, PanelsAreKMajorWithPairsOfBfloat16AndZerosBeyondTheEdge) {
  Memory memory;
  ThreadPool threads(1);
  const OwnedTensor weights = random_tensor(memory, DType::bf16, {3, 5}, 1);
  const PackedMatrix matrix =
      pack_matrix(std::span(&weights.view, 1), DType::bf16, memory, threads);
  EXPECT_EQ(matrix.padded_k(), 6);
  const auto* const panel = static_cast<const BFloat16*>(matrix.panel(0));
  for (int64_t k = 0; k < 6; ++k) {
    for (int64_t n = 0; n < 32; ++n) {
      const uint16_t expected =
          n < 3 && k < 5 ? weights.view.row<BFloat16>(n)[k].bits : uint16_t{0};
      EXPECT_EQ(panel[(k / 2 * 32 + n) * 2 + k % 2].bits, expected) << n << " " << k;
    }
  }
}

TEST(PackedMatrix, ReadsStridedAndMisalignedParts) {
  Memory memory;
  ThreadPool threads(1);
  const OwnedTensor weights = random_tensor(memory, DType::bf16, {6, 20}, 1);
  const Tensor slice = weights.view.slice(1, 3, 16);
  const PackedMatrix strided = pack_matrix(std::span(&slice, 1), DType::bf16, memory, threads);
  EXPECT_EQ(row_of(strided, 5), rounded_row(memory, slice, 5, DType::bf16));

  std::vector<char> file(weights.view.size_bytes() + 1);
  std::memcpy(file.data() + 1, weights.view.raw(), weights.view.size_bytes());
  const Tensor misaligned(file.data() + 1, DType::bf16, {6, 20});
  const PackedMatrix matrix = pack_matrix(std::span(&misaligned, 1), DType::bf16, memory, threads);
  EXPECT_EQ(row_of(matrix, 4), rounded_row(memory, weights.view, 4, DType::bf16));
}

// Scales that are powers of two are exact in every step, so the values come back as they were.
class EvenRows : public GroupedRows {
 public:
  explicit EvenRows(const GroupedRows& rows) : rows_(rows) {}
  int64_t num_rows() const override { return rows_.num_rows(); }
  int64_t row_length() const override { return rows_.row_length(); }
  Grouping grouping() const override { return rows_.grouping(); }
  DType value_dtype() const override { return DType::f32; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override {
    rows_.read_codes(row, codes, scales, offsets);
    for (size_t g = 0; g < scales.size(); ++g) {
      scales[g] = g % 2 == 0 ? 0.25f : -2.0f;
      offsets[g] = static_cast<float>(g % 5) * 0.5f;
    }
  }
  void read_values(int64_t, std::span<float>) const override {}
  std::vector<std::span<const std::byte>> stored_bytes() const override { return {}; }

 private:
  const GroupedRows& rows_;
};

TEST(PackedMatrix, InputsShareAScaleAsFarAsGroupsAndRowsAllow) {
  EXPECT_EQ(shared_inputs({.group_size = 32}, 2048), 128);
  EXPECT_EQ(shared_inputs({.group_size = 32}, 17 * 64), 64);
  EXPECT_EQ(shared_inputs({.group_size = 32}, 33 * 32), 32);
  EXPECT_EQ(shared_inputs({.group_size = 64}, 2048), 64);
  EXPECT_EQ(shared_inputs({.group_size = 128}, 2048), 128);
  EXPECT_EQ(shared_inputs({.group_size = 16, .groups_per_factor = 16}, 2048), 256);
  EXPECT_EQ(shared_inputs({.group_size = 32, .groups_per_factor = 4}, 2048), 128);
  EXPECT_EQ(shared_inputs({.group_size = 128, .groups_per_factor = 4}, 2048), 256);
}

TEST(PackedMatrix, CodesOfEveryWidthComeBack) {
  Memory memory;
  ThreadPool threads(2);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int64_t size : {16, 32, 64, 128}) {
      if (!can_pack_codes(bits, size)) continue;
      const auto random = random_rows({.bits = bits, .group_size = size}, 40, 3 * size, 7);
      const EvenRows rows(*random);
      const GroupedRows* const part = &rows;
      const PackedMatrix matrix =
          pack_groups(std::span(&part, 1), ActivationType::int8, memory, threads);
      std::vector<uint8_t> codes(static_cast<size_t>(matrix.k));
      std::vector<float> scales(3), offsets(3);
      const PackedMatrix gathered = gather_columns(matrix, std::vector<int32_t>{39, 33}, memory);
      for (int64_t n = 0; n < matrix.n; ++n) {
        rows.read_codes(n, codes, scales, offsets);
        std::vector<float> expected;
        for (size_t k = 0; k < codes.size(); ++k) {
          const size_t g = k / static_cast<size_t>(size);
          expected.push_back(scales[g] * static_cast<float>(codes[k]) + offsets[g]);
        }
        EXPECT_EQ(row_of(matrix, n), expected) << bits << " bits, groups of " << size;
      }
      EXPECT_EQ(row_of(gathered, 0), row_of(matrix, 39)) << bits;
      EXPECT_EQ(row_of(gathered, 1), row_of(matrix, 33)) << bits;
    }
  }
}

TEST(PackedMatrix, MultiplesOfSharedScalesComeBackExactly) {
  Memory memory;
  ThreadPool threads(2);
  for (const WeightType& type : weight_types()) {
    if (!type.groups || !type.groups->grouping.has_multiples()) continue;
    const Grouping grouping = type.groups->grouping;
    const auto size = static_cast<size_t>(grouping.group_size);
    const auto rows = random_rows(grouping, 40, 3 * grouping.factor_length(), 7);
    const GroupedRows* const part = rows.get();
    const PackedMatrix matrix =
        pack_groups(std::span(&part, 1), ActivationType::int8, memory, threads);
    const PackedMatrix gathered = gather_columns(matrix, std::vector<int32_t>{39, 33}, memory);
    std::vector<uint8_t> codes(static_cast<size_t>(matrix.k));
    std::vector<float> scales(codes.size() / size), offsets(scales.size());
    for (int64_t n = 0; n < matrix.n; ++n) {
      rows->read_codes(n, codes, scales, offsets);
      std::vector<float> expected;
      for (size_t k = 0; k < codes.size(); ++k) {
        expected.push_back(
            std::fma(scales[k / size], static_cast<float>(codes[k]), offsets[k / size]));
      }
      EXPECT_EQ(row_of(matrix, n), expected) << type.name;
    }
    EXPECT_EQ(row_of(gathered, 0), row_of(matrix, 39)) << type.name;
    EXPECT_EQ(row_of(gathered, 1), row_of(matrix, 33)) << type.name;
  }
}

TEST(PackedMatrix, GathersColumnsInTheOrderAsked) {
  Memory memory;
  ThreadPool threads(1);
  for (const DType dtype : kFloatTypes) {
    const PackedMatrix matrix = random_matrix(memory, threads, dtype, 100, 31, 1);
    const PackedMatrix gathered =
        gather_columns(matrix, std::vector<int32_t>{99, 0, 42, 42}, memory);
    EXPECT_EQ(gathered.n, 4);
    EXPECT_EQ(row_of(gathered, 0), row_of(matrix, 99));
    EXPECT_EQ(row_of(gathered, 1), row_of(matrix, 0));
    EXPECT_EQ(row_of(gathered, 3), row_of(matrix, 42));
  }
}

}  // namespace
}  // namespace paceline
