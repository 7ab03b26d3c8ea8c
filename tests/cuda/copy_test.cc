// Asynchronous copies to shared memory: when they land, and what is reported.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/emulation/emulated_device.h"
#include "kernels/cuda/emulation/kernel_table.h"
#include "kernels/cuda/launch.h"
#include "tests/cuda/every_order.h"
#include "tests/expect_error.h"

namespace paceline::cuda::testing {
namespace {

// Adds up 64 floats of each of four stages, while the copies of the next stage are under way.
struct StagedSum {
  static constexpr std::string_view kName = "test_staged_sum";
  static constexpr uint32_t kThreads = 64;
  static constexpr uint32_t kStages = 4;
  struct Params {
    const float* x;  // [stages, threads]
    float* out;      // [threads]
  };
  struct Shared {
    float stage[2][kThreads];
  };
  PL_DEVICE static void begin(const Params& params, Shared& shared, uint32_t stage) {
    const uint32_t thread = thread_index();
    if (stage < kStages && thread < kThreads / 4) {
      copy_async(&shared.stage[stage % 2][thread * 4], params.x + stage * kThreads + thread * 4);
    }
    commit_copies();
  }
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    const uint32_t thread = thread_index();
    float sum = 0.0f;
    begin(params, shared, 0);
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      begin(params, shared, stage + 1);
      wait_copies<1>();
      sync_threads();
      sum += shared.stage[stage % 2][kThreads - 1 - thread];
      sync_threads();
    }
    params.out[thread] = sum;
  }
};
const emulation::AddedKernel<StagedSum> kStagedSum;

std::vector<std::byte> run_staged_sum(CudaDevice& device) {
  std::vector<float> x(StagedSum::kStages * StagedSum::kThreads);
  std::iota(x.begin(), x.end(), 1.0f);
  auto* const out = static_cast<float*>(device.allocate(StagedSum::kThreads * sizeof(float)));
  launch<StagedSum>(device, {}, {.x = to_device(device, x), .out = out});
  return bytes_from_device(device, out, StagedSum::kThreads);
}

TEST(AsyncCopy, StagesArriveInEveryOrder) {
  const std::vector<std::byte> bytes = same_in_every_order(run_staged_sum);
  std::vector<float> sums(StagedSum::kThreads);
  std::memcpy(sums.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], static_cast<float>(4 * (64 - i) + 64 + 128 + 192));
  }
}

// Without the first barrier threads read what others' copies have not brought, without the second
// one a copy overwrites what is still read (seen where copies land early).
TEST(AsyncCopy, EveryBarrierAndWaitIsNeeded) {
  EXPECT_TRUE(needless_syncs(run_staged_sum).empty());
  emulation::EmulatedDevice device(EmulationOptions{});
  run_staged_sum(device);
  EXPECT_EQ(device.sync_sites().size(), 4u);  // one is of the kernel's entry
}

// Copies what `kind` says, and reads shared memory before and behind the wait.
struct CopyOnce {
  static constexpr std::string_view kName = "test_copy_once";
  static constexpr uint32_t kThreads = 32;
  enum Kind : uint32_t { waits, absent, forgets, not_committed, outside, behind, misaligned };
  struct Params {
    uint32_t kind;
    const float* x;  // [4]
    float* out;      // [2, 4]
  };
  struct Shared {
    alignas(16) float values[8];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    if (thread_index() != 0) return;
    const uint32_t offset = params.kind == outside ? 8 : params.kind == misaligned ? 1 : 0;
    copy_async(shared.values + offset, params.x + (params.kind == behind ? 4 : 0),
               params.kind != absent);
    for (size_t i = 0; i < 4; ++i) params.out[i] = shared.values[i];
    if (params.kind == forgets) return;
    if (params.kind != not_committed) commit_copies();
    wait_copies();
    for (size_t i = 0; i < 4; ++i) params.out[4 + i] = shared.values[i];
  }
};
const emulation::AddedKernel<CopyOnce> kCopyOnce;

std::vector<float> copy_once(CopyOnce::Kind kind, bool lands_early = false) {
  const std::unique_ptr<CudaDevice> device =
      make_emulated_device({.lands_copies_early = lands_early});
  auto* const out = static_cast<float*>(device->allocate(8 * sizeof(float)));
  launch<CopyOnce>(
      *device, {},
      {.kind = kind, .x = to_device(*device, std::vector<float>{1, 2, 3, 4}), .out = out});
  return from_device(*device, out, 8);
}

TEST(AsyncCopy, LandsAtItsWait) {
  std::vector<float> values = copy_once(CopyOnce::waits);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(std::isnan(values[i]));
    EXPECT_EQ(values[4 + i], static_cast<float>(i + 1));
  }
  values = copy_once(CopyOnce::waits, true);
  EXPECT_EQ(values[3], 4.0f);
  values = copy_once(CopyOnce::absent);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(values[4 + i], 0.0f);
}

TEST(AsyncCopy, WhatAGpuLeavesUndefinedIsReported) {
  const std::string site = " at tests/cuda/copy_test.cc:";
  for (const CopyOnce::Kind kind : {CopyOnce::forgets, CopyOnce::not_committed}) {
    expect_error(ErrorCode::internal,
                 {"thread 0 ends without waiting for the copy that began" + site},
                 [&] { copy_once(kind); });
  }
  expect_error(ErrorCode::internal, {"thread 0 copies to outside of shared memory" + site},
               [] { copy_once(CopyOnce::outside); });
  expect_error(ErrorCode::internal,
               {"thread 0 copies 16 bytes that are not in one block of the device's" + site},
               [] { copy_once(CopyOnce::behind); });
  expect_error(ErrorCode::internal, {"for a multiple of 16" + site},
               [] { copy_once(CopyOnce::misaligned); });
}

// One warp copies stages in bulk, another one adds them up, each waiting for the other's barriers.
struct BulkSum {
  static constexpr std::string_view kName = "test_bulk_sum";
  static constexpr uint32_t kThreads = 64;
  static constexpr uint32_t kStages = 5, kSlots = 2, kNumbers = 32;
  enum Fault : uint32_t {
    none,
    not_made,
    not_awaited,
    arrives_twice,
    begins_twice,
    behind,
    misaligned
  };
  struct Params {
    uint32_t fault;
    const float* x;  // [stages, numbers]
    float* out;      // [numbers]
  };
  struct Shared {
    alignas(16) float slots[kSlots][kNumbers];
    BarrierState landed[kSlots];
    BarrierState read[kSlots];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    if (thread_index() == 0 && params.fault != not_made) {
      for (uint32_t i = 0; i < kSlots; ++i) {
        init_barrier(shared.landed[i], kCopyArrivals);
        init_barrier(shared.read[i], 1);
      }
    }
    sync_threads();
    warp_index() == 0 ? copy(params, shared) : add(params, shared);
  }
  PL_DEVICE static void copy(const Params& params, Shared& shared) {
    constexpr uint32_t kBytes = kNumbers * sizeof(float);
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      const uint32_t slot = stage % kSlots;
      wait_barrier(shared.read[slot], (stage / kSlots + 1) % 2);
      begin_bulk(shared.landed[slot], kBytes);
      if (params.fault == begins_twice) begin_bulk(shared.landed[slot], kBytes);
      const uint32_t offset = params.fault == misaligned ? 1 : params.fault == behind ? 16 : 0;
      for (uint32_t half = 0; half < 2; ++half) {
        copy_bulk(shared.slots[slot] + half * kNumbers / 2,
                  params.x + stage * kNumbers + half * kNumbers / 2 + offset, kBytes / 2,
                  shared.landed[slot]);
      }
      end_bulk(shared.landed[slot]);
    }
  }
  PL_DEVICE static void add(const Params& params, Shared& shared) {
    float sum = 0.0f;
    const uint32_t stages = params.fault == not_awaited ? kStages - 1 : kStages;
    for (uint32_t stage = 0; stage < stages; ++stage) {
      const uint32_t slot = stage % kSlots;
      wait_barrier(shared.landed[slot], stage / kSlots % 2);
      sum += shared.slots[slot][kNumbers - 1 - lane_index()];
      arrive_as_warp(shared.read[slot]);
      if (params.fault == arrives_twice && lane_index() == 0) arrive(shared.landed[slot]);
    }
    params.out[lane_index()] = sum;
  }
};
const emulation::AddedKernel<BulkSum> kBulkSum;

std::vector<std::byte> run_bulk_sum(CudaDevice& device, BulkSum::Fault fault = BulkSum::none) {
  std::vector<float> x(BulkSum::kStages * BulkSum::kNumbers + 1);
  std::iota(x.begin(), x.end(), 1.0f);
  auto* const out = static_cast<float*>(device.allocate(BulkSum::kNumbers * sizeof(float)));
  launch<BulkSum>(device, {}, {.fault = fault, .x = to_device(device, x), .out = out});
  return bytes_from_device(device, out, BulkSum::kNumbers);
}

TEST(BulkCopy, StagesArriveInEveryOrder) {
  const auto run = [](CudaDevice& device) { return run_bulk_sum(device); };
  const std::vector<std::byte> bytes = same_in_every_order(run);
  std::vector<float> sums(BulkSum::kNumbers);
  std::memcpy(sums.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i], static_cast<float>(5 * (32 - i) + 32 * (1 + 2 + 3 + 4)));
  }
  EXPECT_TRUE(needless_syncs(run).empty());
}

TEST(BulkCopy, WhatAGpuLeavesUndefinedIsReported) {
  const auto expect_fault = [](BulkSum::Fault fault, const char* text) {
    const std::unique_ptr<CudaDevice> device = make_emulated_device({});
    expect_error(ErrorCode::internal, {text}, [&] { run_bulk_sum(*device, fault); });
  };
  expect_fault(BulkSum::not_made, "uses a barrier that was not made at tests/cuda/copy_test.cc");
  expect_fault(BulkSum::not_awaited, "no thread waits for the copy that began at");
  expect_fault(BulkSum::arrives_twice, "its threads wait for different things");
  expect_fault(BulkSum::begins_twice, "arrives at a barrier that has all arrivals of its phase");
  expect_fault(BulkSum::behind, "copies 64 bytes that are not in one block of the device's at");
  expect_fault(BulkSum::misaligned, "for a multiple of 16 at");
}

}  // namespace
}  // namespace paceline::cuda::testing
