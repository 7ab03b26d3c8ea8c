// The emulation of a GPU: what threads see of one another, and what it reports.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/emulation/fiber.h"
#include "kernels/cuda/emulation/kernel_table.h"
#include "kernels/cuda/launch.h"
#include "tests/cuda/every_order.h"
#include "tests/expect_error.h"

namespace paceline::cuda::testing {
namespace {

// out[i] = the sum of a block's thread indices up to i, added up by doubling distances.
struct PrefixSum {
  static constexpr std::string_view kName = "test_prefix_sum";
  static constexpr uint32_t kThreads = 256;
  struct Params {
    float* out;  // [blocks, threads]
  };
  struct Shared {
    float sums[kThreads];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    const uint32_t thread = thread_index();
    shared.sums[thread] = static_cast<float>(thread + block_index().x);
    for (uint32_t distance = 1; distance < kThreads; distance *= 2) {
      sync_threads();
      const float before = thread < distance ? 0.0f : shared.sums[thread - distance];
      sync_threads();
      shared.sums[thread] += before;
    }
    params.out[block_index().x * kThreads + thread] = shared.sums[thread];
  }
};
const emulation::AddedKernel<PrefixSum> kPrefixSum;

std::vector<std::byte> run_prefix_sum(CudaDevice& device) {
  constexpr uint32_t kBlocks = 5;
  constexpr size_t kCount = size_t{kBlocks} * PrefixSum::kThreads;
  auto* const out = static_cast<float*>(device.allocate(kCount * sizeof(float)));
  launch<PrefixSum>(device, {.x = kBlocks}, {.out = out});
  return bytes_from_device(device, out, kCount);
}

TEST(Emulation, ThreadsOfABlockMeetAtBarriers) {
  const std::vector<std::byte> bytes = same_in_every_order(run_prefix_sum);
  std::vector<float> sums(bytes.size() / sizeof(float));
  std::memcpy(sums.data(), bytes.data(), bytes.size());
  for (size_t block = 0; block < 5; ++block) {
    float sum = 0.0f;
    for (size_t i = 0; i < PrefixSum::kThreads; ++i) {
      sum += static_cast<float>(i + block);
      ASSERT_EQ(sums[block * PrefixSum::kThreads + i], sum) << block << ", " << i;
    }
  }
}

TEST(Emulation, AMissingBarrierChangesBits) { EXPECT_TRUE(needless_syncs(run_prefix_sum).empty()); }

// What a warp's functions give lane by lane.
struct WarpFunctions {
  static constexpr std::string_view kName = "test_warp_functions";
  static constexpr uint32_t kThreads = 64;
  struct Params {
    uint32_t* words;  // [threads, 8]
    float* floats;    // [threads]
  };
  struct Shared {};
  PL_DEVICE static void run(const Params& params, Shared& /*shared*/) {
    const uint32_t thread = thread_index();
    uint32_t* const words = params.words + size_t{thread} * 8;
    words[0] = shuffle(thread, 31 - lane_index());
    words[1] = shuffle_xor(thread, 5u);
    words[2] = shuffle_down(thread, 3u);
    words[3] = ballot(thread % 3 == 0);
    words[4] = any(thread == 40) ? 1 : 0;
    words[5] = all(thread < 32) ? 1 : 0;
    words[6] = static_cast<uint32_t>(shuffle(-static_cast<int32_t>(thread), 2u));
    sync_warp();
    words[7] = warp_index();
    params.floats[thread] = shuffle_xor(static_cast<float>(thread) + 0.5f, 16u);
  }
};
const emulation::AddedKernel<WarpFunctions> kWarpFunctions;

TEST(Emulation, LanesOfAWarpExchangeValues) {
  const std::vector<std::byte> bytes = same_in_every_order([](CudaDevice& device) {
    auto* const words = static_cast<uint32_t*>(device.allocate(64 * 9 * 4));
    auto* const floats = reinterpret_cast<float*>(words + 64 * 8);
    launch<WarpFunctions>(device, {}, {.words = words, .floats = floats});
    return bytes_from_device(device, words, 64 * 9);
  });
  std::vector<uint32_t> words(64 * 9);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  for (uint32_t thread = 0; thread < 64; ++thread) {
    const uint32_t first = thread / 32 * 32;
    const uint32_t lane = thread % 32;
    const uint32_t* const found = words.data() + size_t{thread} * 8;
    EXPECT_EQ(found[0], first + 31 - lane);
    EXPECT_EQ(found[1], thread ^ 5u);
    EXPECT_EQ(found[2], lane + 3 < 32 ? thread + 3 : thread);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 32; ++i) bits |= ((first + i) % 3 == 0 ? 1u : 0u) << i;
    EXPECT_EQ(found[3], bits);
    EXPECT_EQ(found[4], thread < 32 ? 0u : 1u);
    EXPECT_EQ(found[5], thread < 32 ? 1u : 0u);
    EXPECT_EQ(static_cast<int32_t>(found[6]), -static_cast<int32_t>(first + 2));
    EXPECT_EQ(found[7], thread / 32);
    EXPECT_EQ(std::bit_cast<float>(words[64 * 8 + thread]),
              static_cast<float>(thread ^ 16u) + 0.5f);
  }
}

// Neighbours read what each thread wrote, with no barrier between.
struct Race {
  static constexpr std::string_view kName = "test_race";
  static constexpr uint32_t kThreads = 64;
  struct Params {
    float* out;
  };
  struct Shared {
    float values[kThreads];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    const uint32_t thread = thread_index();
    shared.values[thread] = static_cast<float>(thread);
    params.out[thread] = shared.values[(thread + 1) % kThreads];
  }
};
const emulation::AddedKernel<Race> kRace;

TEST(Emulation, ARaceShowsAsOtherBitsInAnotherOrder) {
  const auto run = [](const EmulationOptions& options) {
    const std::unique_ptr<CudaDevice> device = make_emulated_device(options);
    auto* const out = static_cast<float*>(device->allocate(64 * 4));
    launch<Race>(*device, {}, {.out = out});
    return bytes_from_device(*device, out, 64);
  };
  const std::vector<std::byte> ascending = run({.order = ThreadOrder::ascending});
  EXPECT_FALSE(ascending == run({.order = ThreadOrder::descending}));
  EXPECT_FALSE(ascending == run({.order = ThreadOrder::shuffled, .seed = 3}));
  EXPECT_TRUE(ascending == run({.order = ThreadOrder::ascending}));
}

// Every block writes to one place.
struct BlockRace {
  static constexpr std::string_view kName = "test_block_race";
  static constexpr uint32_t kThreads = 32;
  struct Params {
    uint32_t* last;   // [3]: the block that was last; nullptr: not asked
    uint32_t* count;  // blocks so far
  };
  struct Shared {};
  PL_DEVICE static void run(const Params& params, Shared& /*shared*/) {
    if (thread_index() != 0) return;
    atomic_add(params.count, 1);
    if (params.last == nullptr) return;
    params.last[0] = block_index().x;
    params.last[1] = block_index().y;
    params.last[2] = block_index().z;
  }
};
const emulation::AddedKernel<BlockRace> kBlockRace;

TEST(Emulation, BlocksRunInTheOrderOfTheOptions) {
  const auto run = [](ThreadOrder order, uint64_t seed, int num_threads) {
    const std::unique_ptr<CudaDevice> device =
        make_emulated_device({.order = order, .seed = seed, .num_threads = num_threads});
    auto* const words = static_cast<uint32_t*>(device->allocate(16));
    device->clear(words, 16);
    // Blocks that run at once may only count.
    launch<BlockRace>(*device, {.x = 4, .y = 3, .z = 2},
                      {.last = num_threads == 1 ? words : nullptr, .count = words + 3});
    return from_device(*device, words, 4);
  };
  using Words = std::vector<uint32_t>;
  EXPECT_EQ(run(ThreadOrder::ascending, 0, 1), (Words{3, 2, 1, 24}));
  EXPECT_EQ(run(ThreadOrder::descending, 0, 1), (Words{0, 0, 0, 24}));
  EXPECT_EQ(run(ThreadOrder::shuffled, 5, 2)[3], 24u);
  EXPECT_NE(run(ThreadOrder::shuffled, 1, 1), run(ThreadOrder::shuffled, 2, 1));
}

// Reads its memory before anything is written there.
struct ReadFirst {
  static constexpr std::string_view kName = "test_read_first";
  static constexpr uint32_t kThreads = 32;
  struct Params {
    float* out;
  };
  struct Shared {
    float values[kThreads];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    params.out[thread_index()] = shared.values[thread_index()];
    shared.values[thread_index()] = 1.0f;
  }
};
const emulation::AddedKernel<ReadFirst> kReadFirst;

TEST(Emulation, MemoryIsPoisonedBeforeUse) {
  const std::unique_ptr<CudaDevice> device = make_emulated_device();
  auto* const out = static_cast<float*>(device->allocate(32 * 4));
  for (const float value : from_device(*device, out, 32)) EXPECT_TRUE(std::isnan(value));
  launch<ReadFirst>(*device, {.x = 3}, {.out = out});
  for (const float value : from_device(*device, out, 32)) EXPECT_TRUE(std::isnan(value));
}

// Writes one element more than it was given.
struct WriteBehind {
  static constexpr std::string_view kName = "test_write_behind";
  static constexpr uint32_t kThreads = 64;
  struct Params {
    float* out;
    uint32_t count;
  };
  struct Shared {};
  PL_DEVICE static void run(const Params& params, Shared& /*shared*/) {
    if (thread_index() <= params.count) params.out[thread_index()] = 1.0f;
  }
};
const emulation::AddedKernel<WriteBehind> kWriteBehind;

TEST(Emulation, AWriteBehindABlockIsReported) {
  const auto run = [] {
    const std::unique_ptr<CudaDevice> device = make_emulated_device();
    auto* const out = static_cast<float*>(device->allocate(50 * 4));
    launch<WriteBehind>(*device, {}, {.out = out, .count = 49});
    launch<WriteBehind>(*device, {}, {.out = out, .count = 50});
  };
#if defined(PACELINE_ASAN_FIBERS)
  EXPECT_DEATH(run(), "use-after-poison");
#else
  expect_error(ErrorCode::internal, {"kernel test_write_behind wrote behind a block of 200 bytes"},
               run);
#endif
}

// Writes `count` elements of its shared memory of 50.
struct FillShared {
  static constexpr std::string_view kName = "test_fill_shared";
  static constexpr uint32_t kThreads = 64;
  struct Params {
    uint32_t count;
  };
  struct Shared {
    float elements[50];
  };
  PL_DEVICE static void run(const Params& params, Shared& shared) {
    float* const elements = shared.elements;
    if (thread_index() < params.count) elements[thread_index()] = 1.0f;
  }
};
const emulation::AddedKernel<FillShared> kFillShared;

TEST(Emulation, AWriteBehindSharedMemoryIsReported) {
  const auto run = [] {
    const std::unique_ptr<CudaDevice> device = make_emulated_device();
    launch<FillShared>(*device, {.x = 3}, {.count = 50});
    launch<FillShared>(*device, {.x = 3}, {.count = 51});
  };
#if defined(PACELINE_ASAN_FIBERS)
  EXPECT_DEATH(run(), "heap-buffer-overflow");
#else
  expect_error(ErrorCode::internal,
               {"kernel test_fill_shared, block (0, 0, 0): wrote behind its 200 bytes of shared "
                "memory"},
               run);
#endif
}

TEST(EmulationDeathTest, GuardedMemoryIsInaccessibleOutsideOfCalls) {
  const std::unique_ptr<CudaDevice> device = make_emulated_device({.guards_memory = true});
  auto* const out = static_cast<float*>(device->allocate(64 * 4));
  device->clear(out, 64 * 4);
  EXPECT_EQ(from_device(*device, out, 64)[63], 0.0f);
  EXPECT_DEATH(out[0] = 1.0f, "");
  EXPECT_DEATH(std::fprintf(stderr, "%f", double{out[0]}), "");
}

// The last threads of a block leave before its barrier.
struct EarlyReturn {
  static constexpr std::string_view kName = "test_early_return";
  static constexpr uint32_t kThreads = 96;
  struct Params {
    uint32_t count;
  };
  struct Shared {};
  PL_DEVICE static void run(const Params& params, Shared& /*shared*/) {
    if (thread_index() >= params.count) return;
    sync_threads();
  }
};
const emulation::AddedKernel<EarlyReturn> kEarlyReturn;

TEST(Emulation, ABarrierThatNotAllReachIsReported) {
  const std::unique_ptr<CudaDevice> device = make_emulated_device();
  launch<EarlyReturn>(*device, {.x = 2}, {.count = 96});
  const auto run = [&] { launch<EarlyReturn>(*device, {.x = 2, .y = 2}, {.count = 40}); };
  const std::vector<std::string> parts = {
      "kernel test_early_return, block (0, 0, 0)",
      "threads 0-39 at the barrier at tests/cuda/emulation_test.cc:", "threads 40-95 ended"};
  expect_error(ErrorCode::internal, parts, run);
  // The device is spoilt, as a GPU's context would be.
  expect_error(ErrorCode::internal, parts, [&] { device->synchronize(); });
  expect_error(ErrorCode::internal, parts, [&] { device->allocate(1); });
}

TEST(Emulation, TheFirstBlockIsReportedWhicheverThreadRanIt) {
  for (int i = 0; i < 20; ++i) {
    const std::unique_ptr<CudaDevice> device = make_emulated_device({.num_threads = 2});
    expect_error(ErrorCode::internal, {"block (0, 0, 0)"},
                 [&] { launch<EarlyReturn>(*device, {.x = 16}, {.count = 5}); });
  }
}

// Halves of a block, or of a warp, wait at different places.
struct Diverging {
  static constexpr std::string_view kName = "test_diverging";
  static constexpr uint32_t kThreads = 64;
  struct Params {
    uint32_t kind;
  };
  struct Shared {};
  PL_DEVICE static void run(const Params& params, Shared& /*shared*/) {
    const bool is_first = thread_index() < (params.kind == 0 ? 32 : 16);
    if (params.kind <= 1) {
      if (is_first) {
        sync_threads();
      } else {
        sync_threads();
      }
    } else if (params.kind == 2) {
      if (is_first) {
        sync_warp();
      } else {
        sync_warp();
      }
    } else if (params.kind == 3) {
      if (is_first) {
        ballot(true);
      } else {
        shuffle(1u, 0);
      }
    } else if (is_first) {
      sync_warp();
    }
  }
};
const emulation::AddedKernel<Diverging> kDiverging;

TEST(Emulation, ThreadsThatWaitOnDifferentLinesAreReported) {
  const auto report = [](uint32_t kind) {
    const std::unique_ptr<CudaDevice> device = make_emulated_device();
    return error_message(ErrorCode::internal,
                         [&] { launch<Diverging>(*device, {}, {.kind = kind}); });
  };
  using ::testing::MatchesRegex;
  EXPECT_THAT(report(0), MatchesRegex(".*threads 0-31 at the barrier at .*; threads 32-63 at the "
                                      "barrier at .*"));
  EXPECT_THAT(report(1), MatchesRegex(".*threads 0-15 at the barrier at .*; threads 16-63 at the "
                                      "barrier at .*"));
  for (const uint32_t kind : {2u, 3u}) {
    EXPECT_THAT(report(kind), MatchesRegex(".*threads 0-15 in a warp function at .*; thread 16 in "
                                           "a warp function at .*"));
  }
  EXPECT_THAT(report(4), MatchesRegex(".*threads 0-15 in a warp function at .*; threads 16-63 "
                                      "ended.*"));
}

TEST(Emulation, ALaunchBeyondTheHardwareIsAnError) {
  const std::unique_ptr<CudaDevice> device = make_emulated_device();
  const auto launch_as = [&](KernelEntry kernel, Grid grid, size_t param_bytes) {
    return [&device, kernel, grid, param_bytes] {
      const std::vector<std::byte> params(param_bytes);
      device->launch(kernel, grid, params);
    };
  };
  const KernelEntry kernel = kernel_entry<PrefixSum>();
  const auto expect = [&](const std::vector<std::string>& parts, KernelEntry entry, Grid grid,
                          size_t param_bytes) {
    expect_error(ErrorCode::internal, parts, launch_as(entry, grid, param_bytes));
  };
  KernelEntry other = kernel;
  other.threads = 1056;
  expect({"test_prefix_sum", "1056 threads", "at most 1024"}, other, {}, 8);
  other.threads = 40;
  expect({"40 threads", "whole warps"}, other, {}, 8);
  other = kernel;
  other.shared_bytes = 227 * 1024 + 1;
  expect({"232449 bytes of shared memory", "at most 232448"}, other, {}, 8);
  other.shared_bytes = 4;
  expect({"8 bytes of parameters and 4 of shared memory, it has 8 and 1024"}, other, {}, 8);
  expect({"4097 bytes of parameters", "at most 4096"}, kernel, {}, 4097);
  expect({"16 bytes of parameters"}, kernel, {}, 16);
  expect({"65536 blocks along y"}, kernel, {.y = 65536}, 8);
  expect({"65536 blocks along z"}, kernel, {.z = 65536}, 8);
  other = kernel;
  other.name = "test_nobody";
  expect({"kernel test_nobody", "none of this name"}, other, {}, 8);
  EXPECT_NO_THROW(launch_as(kernel, {.x = 0}, 8)());
}

TEST(Emulation, CopiesStayInsideTheDevicesMemory) {
  const std::unique_ptr<CudaDevice> device = make_emulated_device({.total_bytes = 1000});
  auto* const block = static_cast<std::byte*>(device->allocate(600));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u);
  EXPECT_EQ(device->info().free_bytes, 400u);
  expect_error(ErrorCode::exhausted, {"401 bytes", "400 of 1000 are free"},
               [&] { device->allocate(401); });
  std::vector<std::byte> bytes(700, std::byte{7});
  device->copy_to_device(block + 100, bytes.data(), 500);
  expect_error(ErrorCode::internal, {"501 bytes at offset 100 of a block of 600"},
               [&] { device->copy_to_device(block + 100, bytes.data(), 501); });
  expect_error(ErrorCode::internal, {"not the device's memory"},
               [&] { device->copy_from_device(bytes.data(), bytes.data(), 8); });
  expect_error(ErrorCode::internal, {"copy within the device (to)"},
               [&] { device->copy_within_device(block + 1, block, 600); });
  expect_error(ErrorCode::internal, {"100 bytes overlap"},
               [&] { device->copy_within_device(block, block + 99, 100); });
  device->copy_within_device(block, block + 300, 100);
  device->clear(block + 4, 8);
  device->copy_from_device(bytes.data(), block, 16);
  EXPECT_EQ(bytes[3], std::byte{7});
  EXPECT_EQ(bytes[4], std::byte{0});
  EXPECT_EQ(bytes[12], std::byte{7});
  device->release(block, 600);
  EXPECT_EQ(device->info().free_bytes, 1000u);
}

}  // namespace
}  // namespace paceline::cuda::testing
