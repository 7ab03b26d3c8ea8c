// Matrices loaded from shared memory by a warp: which lane gets which elements, and what is
// reported.
#include <gtest/gtest.h>

#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/emulation/kernel_table.h"
#include "kernels/cuda/launch.h"
#include "tests/cuda/every_order.h"
#include "tests/expect_error.h"

namespace paceline::cuda::testing {
namespace {

// Row j of matrix i is row 31 - (8 i + j) of shared memory.
struct LoadTransposed {
  static constexpr std::string_view kName = "test_load_transposed";
  static constexpr uint32_t kThreads = 32;
  static constexpr uint32_t kWords = 4;  // of a row: 8 elements
  struct Params {
    const uint32_t* rows;  // [32, 4]
    uint32_t* out;         // [lanes, 4]
    uint32_t shift;        // bytes that are added to addresses
  };
  struct Shared {
    alignas(16) uint32_t rows[kThreads][kWords];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    const uint32_t lane = thread_index();
    for (uint32_t i = 0; i < kWords; ++i) shared.rows[lane][i] = params.rows[lane * kWords + i];
    sync_warp();
    uint32_t loaded[4];
    load_transposed(loaded, reinterpret_cast<const char*>(shared.rows[31 - lane]) + params.shift);
    for (uint32_t i = 0; i < 4; ++i) params.out[lane * 4 + i] = loaded[i];
  }
};
const emulation::AddedKernel<LoadTransposed> kLoadTransposed;

// Element (row, column) is 8 row + column.
std::vector<uint32_t> numbered_rows() {
  std::vector<uint32_t> words(128);
  for (uint32_t i = 0; i < 128; ++i) words[i] = 2 * i | (2 * i + 1) << 16;
  return words;
}

std::vector<std::byte> load_numbered(CudaDevice& device) {
  auto* const out = static_cast<uint32_t*>(device.allocate(128 * sizeof(uint32_t)));
  launch<LoadTransposed>(device, {},
                         {.rows = to_device(device, numbered_rows()), .out = out, .shift = 0});
  return bytes_from_device(device, out, 128);
}

TEST(MatrixLoad, GivesEachLaneAPairOfAColumn) {
  const std::vector<std::byte> bytes = same_in_every_order(load_numbered);
  std::vector<uint32_t> loaded(128);
  std::memcpy(loaded.data(), bytes.data(), bytes.size());
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t matrix = 0; matrix < 4; ++matrix) {
      const auto element = [matrix](uint32_t row, uint32_t column) {
        return 8 * (31 - (8 * matrix + row)) + column;
      };
      const uint32_t row = lane % 4 * 2, column = lane / 4;
      EXPECT_EQ(loaded[lane * 4 + matrix], element(row, column) | element(row + 1, column) << 16)
          << "lane " << lane << " matrix " << matrix;
    }
  }
}

TEST(MatrixLoad, WhatAGpuCannotLoadIsReported) {
  const auto load_at = [](uint32_t shift) {
    const std::unique_ptr<CudaDevice> device = make_emulated_device({});
    auto* const out = static_cast<uint32_t*>(device->allocate(128 * sizeof(uint32_t)));
    launch<LoadTransposed>(
        *device, {}, {.rows = to_device(*device, numbered_rows()), .out = out, .shift = shift});
    from_device(*device, out, 1);
  };
  expect_error(ErrorCode::internal, {"for a multiple of 16 at tests/cuda/matrix_load_test.cc:"},
               [&] { load_at(4); });
  expect_error(ErrorCode::internal,
               {"loads a matrix from outside of shared memory at tests/cuda/matrix_load_test.cc:"},
               [&] { load_at(512); });
}

}  // namespace
}  // namespace paceline::cuda::testing
