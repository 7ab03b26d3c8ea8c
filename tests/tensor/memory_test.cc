#include "tensor/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/buffer.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Whether all bytes are `value`: the first is, and each equals the one before it.
bool all_are(unsigned char value, const void* block, size_t bytes) {
  const auto* const first = static_cast<const unsigned char*>(block);
  return bytes == 0 || (*first == value && std::memcmp(first, first + 1, bytes - 1) == 0);
}

bool all_zero(const void* block, size_t bytes) { return all_are(0, block, bytes); }

std::string exhausted_message(Memory& memory, size_t bytes) {
  return error_message(ErrorCode::exhausted,
                       [&] { memory.release(memory.allocate(bytes), bytes); });
}

TEST(Memory, BlocksAreAlignedZeroedAndWritable) {
  Memory memory;
  for (size_t bytes :
       {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{5000}, kMiB / 8 - 1, kMiB / 8,
        kMiB / 8 + 1, 2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 7 * kMiB + 12345}) {
    for (int round = 0; round < 3; ++round) {  // the second and third reuse the block
      void* block = memory.allocate(bytes);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
      if (bytes >= 2 * kMiB) {
        ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % (2 * kMiB), 0u);
      }
      ASSERT_TRUE(all_zero(block, bytes)) << bytes << " round " << round;
      std::memset(block, 0xAB, bytes);
      memory.release(block, bytes);
    }
  }
}

// Bytes of the program that are in RAM.
size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Blocks of 300 KiB: 64 MiB of them in two rounds, so that the second takes what the first left.
TEST(Memory, MediumBlocksGoBackToTheSystem) {
  constexpr size_t kBytes = 300 << 10, kCount = 218;
  Memory memory;
  memory.set_cache_limit(0);
  void* const kept = memory.allocate(kBytes);
  std::memset(kept, 0x5A, kBytes);
  for (int round = 0; round < 2; ++round) {
    const size_t before = resident_bytes();
    std::vector<void*> blocks;
    for (size_t i = 0; i < kCount; ++i) {
      blocks.push_back(memory.allocate(kBytes));
      ASSERT_TRUE(all_zero(blocks.back(), kBytes)) << i << " round " << round;
      std::memset(blocks.back(), static_cast<int>(i), kBytes);
    }
    EXPECT_GE(resident_bytes(), before + 60 * kMiB);
    for (size_t i = 0; i < kCount; i += 2) memory.release(blocks[i], kBytes);
    for (size_t i = 1; i < kCount; i += 2) {
      ASSERT_TRUE(all_are(static_cast<unsigned char>(i), blocks[i], kBytes)) << i;
      memory.release(blocks[i], kBytes);
    }
    if (!is_sanitized()) {
      EXPECT_LE(resident_bytes(), before + 8 * kMiB);
    }
  }
  EXPECT_TRUE(all_are(0x5A, kept, kBytes));
  memory.release(kept, kBytes);
}

TEST(Memory, AnEmptyBlockIsABlock) {
  Memory memory;
  void* block = memory.allocate(0);
  EXPECT_NE(block, nullptr);
  memory.release(block, 0);
  EXPECT_EQ(memory.stats().active_bytes, 0u);
}

TEST(Memory, CountsActivePeakAndCached) {
  Memory memory;
  void* first = memory.allocate(4096);
  void* second = memory.allocate(8192);
  EXPECT_EQ(memory.stats().active_bytes, 12288u);
  EXPECT_EQ(memory.stats().peak_bytes, 12288u);
  EXPECT_EQ(memory.stats().cached_bytes, 0u);
  memory.release(first, 4096);
  EXPECT_EQ(memory.stats().active_bytes, 8192u);
  EXPECT_EQ(memory.stats().peak_bytes, 12288u);
  EXPECT_EQ(memory.stats().cached_bytes, 4096u);
  memory.reset_peak();
  EXPECT_EQ(memory.stats().peak_bytes, 8192u);
  first = memory.allocate(4096);
  EXPECT_EQ(memory.stats().cached_bytes, 0u);
  EXPECT_EQ(memory.stats().peak_bytes, 12288u);
  memory.release(first, 4096);
  memory.release(second, 8192);
  EXPECT_EQ(memory.stats().active_bytes, 0u);
  EXPECT_EQ(memory.stats().cached_bytes, 12288u);
  memory.clear_cache();
  EXPECT_EQ(memory.stats().cached_bytes, 0u);
}

TEST(Memory, ReusesBlocksOfTheSizeOrALittleMore) {
  Memory memory;
  void* block = memory.allocate(64 * 1000);
  memory.release(block, 64 * 1000);
  void* again = memory.allocate(64 * 1000);
  EXPECT_EQ(again, block);
  memory.release(again, 64 * 1000);
  void* smaller = memory.allocate(64 * 900);  // 1000 is 11 % more
  EXPECT_EQ(smaller, block);
  EXPECT_EQ(memory.stats().active_bytes, 64u * 1000);  // the block's full capacity
  memory.release(smaller, 64 * 900);
  void* much_smaller = memory.allocate(64 * 800);
  EXPECT_EQ(memory.stats().cached_bytes, 64u * 1000);
  void* larger = memory.allocate(64 * 1001);
  EXPECT_EQ(memory.stats().cached_bytes, 64u * 1000);
  memory.release(much_smaller, 64 * 800);
  memory.release(larger, 64 * 1001);
}

TEST(Memory, TheCacheLimitGivesTheOldestBlocksBack) {
  Memory memory;
  EXPECT_GT(memory.set_cache_limit(10'240), 0u);
  EXPECT_EQ(memory.set_cache_limit(10'240), 10'240u);
  void* blocks[3] = {memory.allocate(4096), memory.allocate(4096), memory.allocate(4096)};
  for (void* block : blocks) memory.release(block, 4096);
  EXPECT_EQ(memory.stats().cached_bytes, 8192u);
  void* newest = memory.allocate(4096);
  void* middle = memory.allocate(4096);
  EXPECT_EQ((std::pair{std::min(newest, middle), std::max(newest, middle)}),
            (std::pair{std::min(blocks[1], blocks[2]), std::max(blocks[1], blocks[2])}));
  memory.release(newest, 4096);
  memory.release(middle, 4096);
  // A block larger than the limit isn't cached, and evicts nothing.
  void* large = memory.allocate(16'384);
  memory.release(large, 16'384);
  EXPECT_EQ(memory.stats().cached_bytes, 8192u);
  memory.set_cache_limit(5000);
  EXPECT_EQ(memory.stats().cached_bytes, 4096u);
  memory.set_cache_limit(0);
  EXPECT_EQ(memory.stats().cached_bytes, 0u);
}

TEST(Memory, TheHardLimitThrowsAndSaysWhatWasAsked) {
  Memory memory;
  EXPECT_EQ(memory.set_memory_limit(100'032), SIZE_MAX);
  void* block = memory.allocate(60'032);
  const std::string message = exhausted_message(memory, 40'001);
  for (const char* part : {"40001", "60032", "100032"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  // Nothing changed, and an exact fit is possible.
  EXPECT_EQ(memory.stats().active_bytes, 60'032u);
  EXPECT_EQ(memory.stats().peak_bytes, 60'032u);
  void* rest = memory.allocate(40'000);
  EXPECT_EQ(memory.stats().active_bytes, 100'032u);
  exhausted_message(memory, 1);
  memory.release(rest, 40'000);
  memory.release(block, 60'032);
}

TEST(Memory, TheCacheMakesRoomBelowTheHardLimit) {
  Memory memory;
  memory.set_memory_limit(3 * 64 * 1024);
  void* first = memory.allocate(64 * 1024);
  void* second = memory.allocate(2 * 64 * 1024);
  memory.release(first, 64 * 1024);
  memory.release(second, 2 * 64 * 1024);
  EXPECT_EQ(memory.stats().cached_bytes, 3u * 64 * 1024);
  void* all = memory.allocate(3 * 64 * 1024);
  EXPECT_EQ(memory.stats().cached_bytes, 0u);
  memory.release(all, 3 * 64 * 1024);
}

TEST(Memory, ALowerLimitTakesFromTheCacheButNotFromOwners) {
  Memory memory;
  void* kept = memory.allocate(8192);
  void* freed = memory.allocate(8192);
  memory.release(freed, 8192);
  memory.set_memory_limit(8192);
  EXPECT_EQ(memory.stats().cached_bytes, 0u);
  memory.set_memory_limit(64);
  EXPECT_EQ(memory.stats().active_bytes, 8192u);
  exhausted_message(memory, 8192);
  memory.release(kept, 8192);
  memory.clear_cache();
  exhausted_message(memory, 128);
  memory.set_memory_limit(SIZE_MAX);
  memory.release(memory.allocate(128), 128);
}

TEST(Memory, ImpossibleSizesAreErrorsToo) {
  Memory memory;
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 2 - 4 * kMiB, size_t{1} << 60}) {
    EXPECT_NE(exhausted_message(memory, bytes).find(std::to_string(bytes)), std::string::npos);
  }
  EXPECT_EQ(memory.stats().active_bytes, 0u);
  EXPECT_EQ(memory.stats().peak_bytes, 0u);
}

// Compares with a naive model: no two blocks overlap, contents stay, counts agree.
TEST(Memory, RandomAllocationsAgreeWithTheBooks) {
  struct Held {
    size_t bytes;
    unsigned char fill;
  };
  Memory memory;
  memory.set_cache_limit(8 * kMiB);
  memory.set_memory_limit(24 * kMiB);
  std::mt19937 random(4);
  std::map<unsigned char*, Held> held;
  size_t asked = 0, num_refused = 0;
  const int num_steps = scaled(6000, 150'000);
  for (int step = 0; step < num_steps; ++step) {
    if (random() % 2 == 0 || held.empty()) {
      const size_t bytes = random() % (random() % 8 == 0 ? 5 * kMiB : 100'000);
      unsigned char* block = nullptr;
      try {
        block = static_cast<unsigned char*>(memory.allocate(bytes));
      } catch (const Error&) {
        ++num_refused;
        ASSERT_GT(asked * 9 / 8 + held.size() * 64 + bytes, 24 * kMiB - kMiB);
        continue;
      }
      ASSERT_TRUE(all_zero(block, bytes));
      const auto next = held.lower_bound(block);
      ASSERT_TRUE(next == held.end() || block + bytes <= next->first);
      ASSERT_TRUE(next == held.begin() ||
                  std::prev(next)->first + std::prev(next)->second.bytes <= block);
      const auto fill = static_cast<unsigned char>(1 + random() % 255);
      std::memset(block, fill, bytes);
      held[block] = {bytes, fill};
      asked += bytes;
    } else {
      const auto chosen = std::next(held.begin(), static_cast<long>(random() % held.size()));
      const auto [bytes, fill] = chosen->second;
      ASSERT_TRUE(all_are(fill, chosen->first, bytes));
      memory.release(chosen->first, bytes);
      asked -= bytes;
      held.erase(chosen);
    }
    const MemoryStats stats = memory.stats();
    ASSERT_GE(stats.active_bytes, asked);
    ASSERT_LE(stats.active_bytes, asked + asked / 8 + held.size() * 4096);
    ASSERT_LE(stats.cached_bytes, 8 * kMiB);
    ASSERT_LE(stats.active_bytes + stats.cached_bytes, 24 * kMiB);
    ASSERT_GE(stats.peak_bytes, stats.active_bytes);
  }
  EXPECT_GT(num_refused, 0u);
  for (const auto& [block, what] : held) memory.release(block, what.bytes);
  EXPECT_EQ(memory.stats().active_bytes, 0u);
}

TEST(Memory, ManyThreadsAtOnce) {
  Memory memory;
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong{0};
  const int num_rounds = scaled(500, 50'000);
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < num_rounds; ++i) {
        const size_t bytes = 1 + random() % (i % 50 == 0 ? 3 * kMiB : 20'000);
        Buffer buffer(memory, bytes);
        if (!all_zero(buffer.get(), bytes)) ++num_wrong;
        std::memset(buffer.get(), 1, bytes);
        if (i % 100 == 0) memory.clear_cache();
        if (memory.stats().active_bytes < bytes) ++num_wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, 0);
  EXPECT_EQ(memory.stats().active_bytes, 0u);
}

// VmLck of this process in bytes.
size_t locked_bytes_of_process() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmLck:") {
  }
  size_t kib = 0;
  status >> kib;
  return kib * 1024;
}

TEST(Memory, LockAllLocksWhatIsAndWhatComes) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (limit.rlim_cur < 8 * kMiB && geteuid() != 0) GTEST_SKIP() << "ulimit -l is below 8 MiB";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "these sanitizers make mlock do nothing";
#endif
  const size_t before = locked_bytes_of_process();
  Memory memory;
  Buffer present(memory, 3 * kMiB);
  EXPECT_EQ(memory.lock_all(), 3 * kMiB);
  EXPECT_GE(locked_bytes_of_process(), before + 3 * kMiB);
  Buffer later(memory, 2 * kMiB);
  EXPECT_GE(locked_bytes_of_process(), before + 5 * kMiB);
  EXPECT_EQ(memory.lock_all(), 5 * kMiB);  // again is fine
  present = Buffer();
  later = Buffer();
  memory.clear_cache();
  EXPECT_LE(locked_bytes_of_process(), before);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Runs in a child that gives up the right to lock. Exits with 0 when the refusal is an Error that
// names the remedy.
[[noreturn]] void exit_by_lock_refusal() {
  Memory memory;
  Buffer present(memory, 4096);
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) _exit(2);
  if (geteuid() == 0 && setuid(65534) != 0) _exit(3);
  try {
    memory.lock_all();
  } catch (const Error& error) {
    const bool named = std::string(error.what()).find("ulimit -l") != std::string::npos;
    Buffer still_works(memory, 4096);
    _exit(error.code() == ErrorCode::exhausted && named ? 0 : 4);
  }
  _exit(5);
}

TEST(MemoryDeathTest, ARefusedLockIsAnErrorThatNamesTheRemedy) {
  EXPECT_EXIT(exit_by_lock_refusal(), testing::ExitedWithCode(0), "");
}
#endif

TEST(MemoryDeathTest, MisuseAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Memory memory;
        void* block = memory.allocate(100);
        memory.release(block, 100);
        memory.release(block, 100);
      },
      "freed twice");
  EXPECT_DEATH(
      {
        Memory memory;
        memory.release(memory.allocate(100), 1000);
      },
      "size it doesn't have");
  EXPECT_DEATH(
      {
        Memory memory;
        memory.allocate(1);
      },
      "outlives its memory");
}

#if defined(__SANITIZE_ADDRESS__)
TEST(MemoryDeathTest, TheSanitizerSeesUseAfterReleaseAndOverruns) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Memory memory;
        auto* block = static_cast<volatile char*>(memory.allocate(3 * kMiB));
        memory.release(const_cast<char*>(block), 3 * kMiB);
        block[5] = 1;
      },
      "use-after-poison");
  EXPECT_DEATH(
      {
        Memory memory;
        Buffer buffer(memory, 100);
        static_cast<volatile char*>(buffer.get())[100] = 1;
      },
      "use-after-poison");
}
#endif

TEST(Buffer, OwnsOneBlock) {
  Memory memory;
  {
    Buffer buffer(memory, 4096);
    EXPECT_EQ(buffer.size_bytes(), 4096u);
    void* const block = buffer.get();
    Buffer moved(std::move(buffer));
    EXPECT_EQ(moved.get(), block);
    Buffer other(memory, 8192);
    other = std::move(moved);
    EXPECT_EQ(other.get(), block);
    EXPECT_EQ(other.size_bytes(), 4096u);
    other = Buffer();
    EXPECT_EQ(other.get(), nullptr);
  }
  EXPECT_EQ(memory.stats().active_bytes, 0u);
}

}  // namespace
}  // namespace paceline
