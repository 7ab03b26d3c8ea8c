// Products of a warpgroup: the bits of chains of fused sums for every width and kind of operand,
// and what is reported.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/emulation/kernel_table.h"
#include "kernels/cuda/emulation/mma_tile.h"
#include "kernels/cuda/launch.h"
#include "tests/cuda/every_order.h"
#include "tests/expect_error.h"

namespace paceline::cuda::testing {
namespace {

constexpr uint32_t kDepth = 64;  // of K
constexpr uint32_t kMostColumns = 192;
constexpr uint32_t kGroupBytes = 8 * kDepth * 2;  // of 8 rows

enum class Mistake : uint32_t { none, no_begin, no_wait, changes_operand, keeps_nothing, diverges };

struct ProductTestParams {
  const std::byte* a;         // core matrices [64 / 8][kDepth / 8][8][8]
  const std::byte* b;         // [kMostColumns / 8][kDepth / 8][8][8]
  const std::byte* turned_b;  // the same columns, [kDepth / 8][kMostColumns / 8][8 of K][8 columns]
  const uint16_t* rows;       // a as [64][kDepth]
  float* out;                 // [4 kinds of operands, 64, kMostColumns]
  Mistake mistake;
};

struct ProductTestShared {
  alignas(128) std::byte a[8 * kGroupBytes];
  alignas(128) std::byte b[kMostColumns / 8 * kGroupBytes];
  alignas(128) std::byte turned_b[kMostColumns / 8 * kGroupBytes];
  BarrierState landed;
};

// d += a b, twice over K, with one more group under way than is waited for.
template <int kColumns>
struct ProductTest {
  static constexpr std::string_view kName = kColumns == 8     ? "test_group_products_8"
                                            : kColumns == 16  ? "test_group_products_16"
                                            : kColumns == 32  ? "test_group_products_32"
                                            : kColumns == 64  ? "test_group_products_64"
                                            : kColumns == 96  ? "test_group_products_96"
                                            : kColumns == 128 ? "test_group_products_128"
                                                              : "test_group_products_192";
  static constexpr uint32_t kThreads = 128;
  using Params = ProductTestParams;
  using Shared = ProductTestShared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    if (thread_index() == 0) init_barrier(shared.landed, kCopyArrivals);
    sync_threads();
    if (warp_index() == 0) {
      begin_bulk(shared.landed, sizeof(shared.a) + sizeof(shared.b) + sizeof(shared.turned_b));
      copy_bulk(shared.a, p.a, sizeof(shared.a), shared.landed);
      copy_bulk(shared.b, p.b, sizeof(shared.b), shared.landed);
      copy_bulk(shared.turned_b, p.turned_b, sizeof(shared.turned_b), shared.landed);
      end_bulk(shared.landed);
    }
    wait_barrier(shared.landed, 0);
    for (uint32_t kind = 0; kind < 4; ++kind) multiply(p, shared, kind);
  }

 private:
  PL_DEVICE static void multiply(const Params& p, const Shared& shared, uint32_t kind) {
    float d[kColumns / 2];
    uint32_t kept[kDepth / 16][4];
    const uint32_t row = warp_index() * 16 + lane_index() / 4, t = lane_index() % 4;
    for (uint32_t step = 0; step < kDepth / 16; ++step) {
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t k = step * 16 + i / 2 * 8 + 2 * t;
        const uint16_t* const pair = p.rows + (row + i % 2 * 8) * kDepth + k;
        kept[step][i] = pair[0] | uint32_t{pair[1]} << 16;
      }
    }
    for (uint32_t round = 0; round < 2; ++round) {
      if (p.mistake != Mistake::no_begin) begin_products();
      for (uint32_t step = 0; step < kDepth / 16; ++step) {
        const bool adds = round + step > 0;
        const CoreMatrices a{shared.a + step * 256, 128, kGroupBytes};
        const CoreMatrices b{shared.b + step * 256, 128, kGroupBytes};
        constexpr uint32_t kOfK = kMostColumns / 8 * 128;
        const CoreMatrices turned{shared.turned_b + step * 2 * kOfK, kOfK, 128};
        if (kind == 0) {
          multiply_group<kColumns>(d, a, b, adds);
        } else if (kind == 1) {
          multiply_group<kColumns>(d, kept[step], b, adds);
        } else if (kind == 3) {
          multiply_group_turned<kColumns>(d, a, turned, adds);
        } else if (p.mistake == Mistake::diverges && warp_index() == 1) {
          multiply_group_turned<kColumns>(d, kept[step], b, adds);
        } else {
          multiply_group_turned<kColumns>(d, kept[step], turned, adds);
        }
        commit_products();
        if (step > 0 && p.mistake != Mistake::no_wait) wait_products<1>(d);
        if (step > 0) begin_products();
      }
      if (p.mistake == Mistake::changes_operand && kind == 1) kept[3][0] = 0;
      if (p.mistake != Mistake::no_wait) wait_products<0>(d);
    }
    if (p.mistake != Mistake::keeps_nothing) {
      for (auto& operand : kept) keep_operand(operand);
    }
    for (uint32_t i = 0; i < kColumns / 2; ++i) {
      const uint32_t column = i / 4 * 8 + 2 * t + i % 2;
      p.out[(kind * 64 + row + i / 2 % 2 * 8) * kMostColumns + column] = d[i];
    }
  }
};
const emulation::AddedKernel<ProductTest<8>> kProducts8;
const emulation::AddedKernel<ProductTest<16>> kProducts16;
const emulation::AddedKernel<ProductTest<32>> kProducts32;
const emulation::AddedKernel<ProductTest<64>> kProducts64;
const emulation::AddedKernel<ProductTest<96>> kProducts96;
const emulation::AddedKernel<ProductTest<128>> kProducts128;
const emulation::AddedKernel<ProductTest<192>> kProducts192;

struct Operands {
  std::vector<uint16_t> rows, columns;  // [64 or kMostColumns][kDepth]
};

Operands random_operands() {
  std::mt19937 random(44);
  std::normal_distribution<float> normal;
  const auto fill = [&](size_t count) {
    std::vector<uint16_t> values(count * kDepth);
    for (uint16_t& value : values) {
      value = static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(random)) >> 16);
    }
    return values;
  };
  return {fill(64), fill(kMostColumns)};
}

std::vector<uint16_t> core_matrices(const std::vector<uint16_t>& rows) {
  std::vector<uint16_t> packed(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t row = i / kDepth, k = i % kDepth;
    packed[((row / 8 * (kDepth / 8) + k / 8) * 8 + row % 8) * 8 + k % 8] = rows[i];
  }
  return packed;
}

std::vector<uint16_t> turned_matrices(const std::vector<uint16_t>& columns) {
  std::vector<uint16_t> packed(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t column = i / kDepth, k = i % kDepth;
    packed[((k / 8 * (kMostColumns / 8) + column / 8) * 8 + k % 8) * 8 + column % 8] = columns[i];
  }
  return packed;
}

constexpr size_t kOutputs = size_t{4} * 64 * kMostColumns;

template <int kColumns>
float* launch_products(CudaDevice& device, Mistake mistake) {
  const Operands operands = random_operands();
  const auto bytes = [&](const std::vector<uint16_t>& values) {
    return reinterpret_cast<const std::byte*>(to_device(device, values));
  };
  auto* const out = static_cast<float*>(device.allocate(kOutputs * sizeof(float)));
  device.clear(out, kOutputs * sizeof(float));
  launch<ProductTest<kColumns>>(device, {},
                                {.a = bytes(core_matrices(operands.rows)),
                                 .b = bytes(core_matrices(operands.columns)),
                                 .turned_b = bytes(turned_matrices(operands.columns)),
                                 .rows = to_device(device, operands.rows),
                                 .out = out,
                                 .mistake = mistake});
  return out;
}

float expected_sum(const Operands& operands, size_t row, size_t column) {
  float sum = 0.0f;
  for (size_t step = 0; step < 2 * kDepth / 16; ++step) {
    std::array<uint16_t, 16> a, b;
    const size_t k = step * 16 % kDepth;
    std::copy_n(operands.rows.begin() + static_cast<int64_t>(row * kDepth + k), 16, a.begin());
    std::copy_n(operands.columns.begin() + static_cast<int64_t>(column * kDepth + k), 16,
                b.begin());
    sum = emulation::fused_dot(a, b, sum);
  }
  return sum;
}

template <int kColumns>
void expect_chains_of_fused_sums() {
  const std::vector<std::byte> bytes = same_in_every_order([](CudaDevice& device) {
    return bytes_from_device(device, launch_products<kColumns>(device, Mistake::none), kOutputs);
  });
  std::vector<float> sums(kOutputs);
  std::memcpy(sums.data(), bytes.data(), bytes.size());
  const Operands operands = random_operands();
  for (size_t row = 0; row < 64; ++row) {
    for (size_t column = 0; column < kColumns; ++column) {
      const float expected = expected_sum(operands, row, column);
      for (size_t kind = 0; kind < 4; ++kind) {
        ASSERT_EQ(sums[(kind * 64 + row) * kMostColumns + column], expected)
            << "row " << row << ", column " << column << ", kind " << kind;
      }
    }
  }
}

TEST(GroupProducts, AreChainsOfFusedSums) {
  expect_chains_of_fused_sums<8>();
  expect_chains_of_fused_sums<16>();
  expect_chains_of_fused_sums<32>();
  expect_chains_of_fused_sums<64>();
  expect_chains_of_fused_sums<96>();
  expect_chains_of_fused_sums<128>();
  expect_chains_of_fused_sums<192>();
}

TEST(GroupProducts, MistakesAreReported) {
  const auto expect_report = [](Mistake mistake, const std::string& words) {
    const std::unique_ptr<CudaDevice> device = make_emulated_device({});
    expect_error(ErrorCode::internal, {words},
                 [&] { from_device(*device, launch_products<16>(*device, mistake), 1); });
  };
  expect_report(Mistake::no_begin, "without begin_products() since the last wait at");
  expect_report(Mistake::no_wait, "ends without waiting for the product at");
  expect_report(Mistake::changes_operand, "an operand in registers changed before its wait");
  expect_report(Mistake::keeps_nothing, "does not keep the operand of the product at");
  expect_report(Mistake::diverges, "of a group multiply different matrices");
}

}  // namespace
}  // namespace paceline::cuda::testing
