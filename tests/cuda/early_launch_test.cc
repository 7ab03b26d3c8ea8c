// Kernels that begin before earlier ones have ended: what the emulation shows of a wait that is
// missing or comes too late.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/emulation/kernel_table.h"
#include "tests/cuda/every_order.h"
#include "tests/expect_error.h"

namespace paceline::cuda::testing {
namespace {

constexpr uint32_t kBlockThreads = 64;
constexpr uint32_t kBlocks = 5;
constexpr size_t kNumWords = size_t{kBlockThreads} * kBlocks;

struct Words {
  const uint32_t* from;
  uint32_t* to;
};

// to[i] = from[i] + 1; its entry waits for it.
struct Increment {
  static constexpr std::string_view kName = "test_increment";
  static constexpr uint32_t kThreads = kBlockThreads;
  using Params = Words;
  struct Shared {};
  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const uint32_t i = block_index().x * kThreads + thread_index();
    p.to[i] = p.from[i] + 1;
  }
};
const emulation::AddedKernel<Increment> kIncrement;

// The same, with no wait.
struct LateIncrement : Increment {
  static constexpr std::string_view kName = "test_late_increment";
  static constexpr bool kBeginsLate = true;
};
const emulation::AddedKernel<LateIncrement> kLateIncrement;

enum class Reading : uint32_t { behind_wait, behind_one_wait, before_wait, copied_before_wait };
enum class Writing : uint32_t { behind_wait, before_wait };

// The same for words that thread kThreads - 1 - i has brought to shared memory.
struct Hasty {
  static constexpr std::string_view kName = "test_hasty";
  static constexpr uint32_t kThreads = kBlockThreads;
  static constexpr bool kWaitsItself = true;
  struct Params {
    Words words;
    Reading reading = Reading::behind_wait;
    Writing writing = Writing::behind_wait;
  };
  struct Shared {
    alignas(16) uint32_t words[kThreads];
  };
  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const uint32_t thread = thread_index(), first = block_index().x * kThreads;
    const uint32_t other = kThreads - 1 - thread;
    if (p.reading == Reading::before_wait) shared.words[other] = p.words.from[first + other];
    if (p.reading == Reading::copied_before_wait && thread < kThreads / 4) {
      copy_async(&shared.words[4 * thread], p.words.from + first + 4 * thread);
      commit_copies();
    }
    if (p.writing == Writing::before_wait) p.words.to[first + thread] = 7;
    begin_later_kernels();
    if (p.reading != Reading::behind_one_wait || thread == 40) wait_for_earlier_kernels();
    if (p.reading == Reading::behind_one_wait) sync_threads();
    wait_copies();
    if (p.reading <= Reading::behind_one_wait) shared.words[other] = p.words.from[first + other];
    sync_threads();
    p.words.to[first + thread] = shared.words[thread] + 1;
  }
};
const emulation::AddedKernel<Hasty> kHasty;

// Ends without a wait.
struct NeverWaits {
  static constexpr std::string_view kName = "test_never_waits";
  static constexpr uint32_t kThreads = kBlockThreads;
  static constexpr bool kWaitsItself = true;
  using Params = Words;
  struct Shared {};
  PL_DEVICE static void run(const Params& /*p*/, Shared& /*shared*/) {}
};
const emulation::AddedKernel<NeverWaits> kNeverWaits;

// Buffers of [kNumWords], the first of 0, 1, 2 and so on.
class Buffers {
 public:
  explicit Buffers(CudaDevice& device) : device_(device) {
    std::vector<uint32_t> words(kNumWords);
    std::iota(words.begin(), words.end(), 0u);
    buffers_.push_back(to_device(device, words));
    while (buffers_.size() < 5) {
      buffers_.push_back(static_cast<uint32_t*>(device.allocate(kNumWords * 4)));
    }
  }
  Words from_to(size_t from, size_t to) const { return {buffers_[from], buffers_[to]}; }
  std::vector<std::byte> bytes(size_t index) const {
    return bytes_from_device(device_, buffers_[index], kNumWords);
  }

 private:
  CudaDevice& device_;
  std::vector<uint32_t*> buffers_;
};

std::vector<std::byte> counted(uint32_t first) {
  std::vector<uint32_t> words(kNumWords);
  std::iota(words.begin(), words.end(), first);
  std::vector<std::byte> bytes(kNumWords * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

// Three launches, the second and the last with the kernel in question.
std::vector<std::byte> run_chain(CudaDevice& device, Hasty::Params hasty) {
  const Buffers buffers(device);
  launch<Increment>(device, {kBlocks}, buffers.from_to(0, 1));
  hasty.words = buffers.from_to(1, 2);
  launch<Hasty>(device, {kBlocks}, hasty);
  hasty.words = buffers.from_to(2, 3);
  launch<Hasty>(device, {kBlocks}, hasty);
  return buffers.bytes(3);
}

std::vector<EmulationOptions> early_orders() {
  std::vector<EmulationOptions> orders;
  for (EmulationOptions options : every_order()) {
    options.begins_kernels_early = true;
    orders.push_back(options);
  }
  return orders;
}

TEST(EarlyLaunches, KernelsThatWaitComputeTheSame) {
  for (const Reading reading : {Reading::behind_wait, Reading::behind_one_wait}) {
    for (const EmulationOptions& options : early_orders()) {
      const auto device = make_emulated_device(options);
      EXPECT_TRUE(run_chain(*device, {.reading = reading}) == counted(3)) << name_of(options);
    }
  }
}

TEST(EarlyLaunches, WhatIsReadBeforeTheWaitIsOld) {
  for (const EmulationOptions& options : early_orders()) {
    const auto device = make_emulated_device(options);
    EXPECT_FALSE(run_chain(*device, {.reading = Reading::before_wait}) == counted(3))
        << name_of(options);
  }
}

TEST(EarlyLaunches, CopiesThatBeginBeforeTheWaitAreOldWhereTheyLandEarly) {
  const Hasty::Params hasty{.reading = Reading::copied_before_wait};
  const auto device =
      make_emulated_device({.lands_copies_early = true, .begins_kernels_early = true});
  EXPECT_FALSE(run_chain(*device, hasty) == counted(3));
}

TEST(EarlyLaunches, EveryOrderHasAnEarlyKernelAmongThem) {
  for (const Reading reading : {Reading::before_wait, Reading::copied_before_wait}) {
    bool differs = false;
    for (const EmulationOptions& options : every_order()) {
      const auto device = make_emulated_device(options);
      differs |= run_chain(*device, {.reading = reading}) != counted(3);
    }
    EXPECT_TRUE(differs);
  }
}

TEST(EarlyLaunches, WhatIsWrittenBeforeTheWaitSpoilsWhatEarlierKernelsRead) {
  for (const EmulationOptions& options : early_orders()) {
    const auto device = make_emulated_device(options);
    const Buffers buffers(*device);
    launch<Increment>(*device, {kBlocks}, buffers.from_to(0, 1));
    launch<Hasty>(*device, {kBlocks},
                  {.words = buffers.from_to(1, 0), .writing = Writing::before_wait});
    EXPECT_FALSE(buffers.bytes(1) == counted(1)) << name_of(options);
  }
}

TEST(EarlyLaunches, AKernelReadsOldResultsOfTheOneBeforeLast) {
  const auto device = make_emulated_device({.begins_kernels_early = true});
  const Buffers buffers(*device);
  launch<Increment>(*device, {kBlocks}, buffers.from_to(0, 1));
  launch<Increment>(*device, {kBlocks}, buffers.from_to(0, 2));
  launch<Hasty>(*device, {kBlocks},
                {.words = buffers.from_to(1, 3), .reading = Reading::before_wait});
  EXPECT_FALSE(buffers.bytes(3) == counted(2));
}

TEST(EarlyLaunches, ALateKernelNeedsNoWait) {
  for (const EmulationOptions& options : early_orders()) {
    const auto device = make_emulated_device(options);
    const Buffers buffers(*device);
    launch<Increment>(*device, {kBlocks}, buffers.from_to(0, 1));
    launch<LateIncrement>(*device, {kBlocks}, buffers.from_to(1, 2));
    launch<Hasty>(*device, {kBlocks}, {.words = buffers.from_to(2, 3)});
    EXPECT_TRUE(buffers.bytes(3) == counted(3)) << name_of(options);
  }
}

TEST(EarlyLaunches, CopiesAndClearsComeBehindEarlierKernels) {
  const auto device = make_emulated_device({.begins_kernels_early = true});
  const Buffers buffers(*device);
  const auto [first, second] = buffers.from_to(0, 1);
  launch<Increment>(*device, {kBlocks}, {first, second});
  device->copy_within_device(buffers.from_to(0, 2).to, second, kNumWords * 4);
  launch<Increment>(*device, {kBlocks}, {second, buffers.from_to(0, 3).to});
  device->clear(second, kNumWords * 4);
  EXPECT_TRUE(buffers.bytes(2) == counted(1));
  EXPECT_TRUE(buffers.bytes(3) == counted(2));
  EXPECT_TRUE(buffers.bytes(1) == std::vector<std::byte>(kNumWords * 4));
}

TEST(EarlyLaunches, ABlockThatWaitsForNoEarlierKernelIsReported) {
  for (const bool begins_early : {false, true}) {
    const auto device = make_emulated_device({.begins_kernels_early = begins_early});
    const Buffers buffers(*device);
    expect_error(
        ErrorCode::internal,
        {"kernel test_never_waits, block (0, 0, 0): no thread waits for the kernels before "
         "it"},
        [&] { launch<NeverWaits>(*device, {kBlocks}, buffers.from_to(0, 1)); });
    expect_error(ErrorCode::internal, {"test_never_waits"}, [&] { device->synchronize(); });
  }
}

TEST(EarlyLaunches, EveryWaitIsNeeded) {
  const auto run = [](CudaDevice& device) { return run_chain(device, {}); };
  EXPECT_TRUE(needless_syncs(run, "early_launch_test").size() == 1);  // wait_copies, without copies
  EXPECT_TRUE(needless_syncs(run, "kernel_entry").empty());
}

TEST(EarlyLaunches, ALaunchEndsOnAnotherThread) {
  const auto device = make_emulated_device({.begins_kernels_early = true});
  const Buffers buffers(*device);
  launch<Increment>(*device, {kBlocks}, buffers.from_to(0, 1));
  launch<Hasty>(*device, {kBlocks}, {.words = buffers.from_to(1, 2)});
  std::jthread([&] { device->synchronize(); }).join();
  EXPECT_TRUE(buffers.bytes(2) == counted(2));
}

}  // namespace
}  // namespace paceline::cuda::testing
