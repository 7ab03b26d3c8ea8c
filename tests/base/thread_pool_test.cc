#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <limits>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/processors.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline {
namespace {

// Up to a million times, but on a busy machine for no longer than this.
constexpr int kTinyRuns = 1'000'000;
constexpr std::chrono::seconds kTinyRunsTime{4};

// One count, visited by plain increments: two threads at one index would be a race and a wrong
// count.
void expect_every_index_once(ThreadPool& pool, int64_t count, int64_t grain) {
  std::vector<int> visits(static_cast<size_t>(count), 0);
  std::atomic<int> num_bad_pieces{0};
  pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int thread_index) {
    const bool whole = begin == 0 && end == count;
    const bool piece = begin % grain == 0 && end == std::min(begin + grain, count);
    if (!(begin < end && (whole || piece))) ++num_bad_pieces;
    if (thread_index < 0 || thread_index >= pool.num_threads()) ++num_bad_pieces;
    for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
  });
  EXPECT_EQ(num_bad_pieces, 0) << count << " by " << grain;
  EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), count) << count << " by " << grain;
}

// Of the calling thread, in ascending order.
std::vector<int> affinity() { return allowed_processors(); }

TEST(ThreadPool, PinsItsWorkersAndNobodyElse) {
  const std::vector<int> before = affinity(), order = processors_by_core();
  const auto num_threads = static_cast<int>(order.size()) + 2;  // more than there are processors
  for (const auto pinning : {ThreadPool::Pinning::none, ThreadPool::Pinning::pinned}) {
    ThreadPool pool(num_threads, pinning);
    std::vector<std::vector<int>> seen(static_cast<size_t>(num_threads));
    pool.run_on_all([&](int i) { seen[static_cast<size_t>(i)] = affinity(); });
    for (size_t i = 0; i < seen.size(); ++i) {
      const bool is_pinned = pinning == ThreadPool::Pinning::pinned && i > 0 && i < order.size();
      EXPECT_EQ(seen[i], is_pinned ? std::vector<int>{order[i]} : before) << i;
    }
    EXPECT_EQ(affinity(), before);
  }
}

TEST(ThreadPool, ParallelForVisitsEveryIndexExactlyOnce) {
  std::mt19937_64 random(1);
  const int num_rounds = scaled(60, 6000);
  for (int num_threads = 1; num_threads <= 8; ++num_threads) {
    ThreadPool pool(num_threads);
    ASSERT_EQ(pool.num_threads(), num_threads);
    for (int64_t count : {0, 1, 2, 7, 8, 9, 63, 64, 65}) {
      for (int64_t grain : {1, 2, 8, 64}) expect_every_index_once(pool, count, grain);
    }
    for (int round = 0; round < num_rounds; ++round) {
      const auto count = static_cast<int64_t>(random() % 5000);
      const auto grain = static_cast<int64_t>(1 + random() % (round % 2 == 0 ? 16 : 3000));
      expect_every_index_once(pool, count, grain);
    }
  }
}

TEST(ThreadPool, NothingToDoCallsNobody) {
  ThreadPool pool(3);
  for (int64_t count : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    pool.parallel_for(count, 4, [](int64_t, int64_t, int) { FAIL(); });
  }
}

TEST(ThreadPool, CountsNearTheEndOfTheRangeDoNotOverflow) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (int64_t grain : {kHuge / 2, kHuge / 5, kHuge - 1, int64_t{1} << 50}) {
    ThreadPool pool(3);
    std::atomic<int64_t> covered{0};
    std::atomic<int64_t> last{0};
    pool.parallel_for(kHuge, grain, [&](int64_t begin, int64_t end, int) {
      covered += end - begin;
      if (end == kHuge) ++last;
    });
    EXPECT_EQ(covered, kHuge) << grain;
    EXPECT_EQ(last, 1) << grain;
  }
}

TEST(ThreadPool, AGrainBelowOneMeansOne) {
  ThreadPool pool(2);
  for (int64_t grain : {0, -5}) {
    std::vector<int> visits(100, 0);
    pool.parallel_for(100, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
    });
    EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), 100);
  }
}

TEST(ThreadPool, RunCallsEveryThreadOnceAndTheCallerIsThreadZero) {
  ThreadPool pool(5);
  std::vector<std::thread::id> ids(5);
  std::vector<int> calls(5, 0);
  for (int round = 1; round <= 200; ++round) {
    pool.run_on_all([&](int thread_index) {
      ids[static_cast<size_t>(thread_index)] = std::this_thread::get_id();
      ++calls[static_cast<size_t>(thread_index)];
    });
    ASSERT_EQ(std::count(calls.begin(), calls.end(), round), 5);
  }
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 5u);
}

// Each run reads what other threads wrote in the run before it.
TEST(ThreadPool, ARunSeesWhatTheLastOneWrote) {
  ThreadPool pool(4);
  constexpr int64_t kCount = 1000;
  std::vector<int64_t> values(kCount, 0), next(kCount, 0);
  for (int64_t round = 1; round <= 500; ++round) {
    pool.parallel_for(kCount, 7, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        next[static_cast<size_t>(i)] = values[static_cast<size_t>(kCount - 1 - i)] + 1;
      }
    });
    values.swap(next);
    ASSERT_EQ(std::count(values.begin(), values.end(), round), kCount);
  }
}

// The thread that begins a piece of the first share waits inside it until all other pieces are
// done, so other threads must steal the rest of that share.
TEST(ThreadPool, ThreadsStealWhatOthersHaveNotBegun) {
  ThreadPool pool(2);
  for (int round = 0; round < 50; ++round) {
    constexpr int64_t kPieces = 40;
    std::atomic<int64_t> done{0};
    pool.parallel_for(kPieces, 1, [&](int64_t begin, int64_t, int) {
      if (begin == 0) {
        while (done < kPieces - 1) std::this_thread::yield();
      }
      ++done;
    });
    ASSERT_EQ(done, kPieces);
  }
}

// Calls body() for a while and returns how often.
template <class Body>
int64_t repeat_tiny_runs(Body&& body) {
  const auto deadline = std::chrono::steady_clock::now() + kTinyRunsTime;
  int64_t runs = 0;
  while (runs < kTinyRuns && (runs % 64 != 0 || std::chrono::steady_clock::now() < deadline)) {
    body();
    ++runs;
  }
  return runs;
}

TEST(ThreadPool, TinyRunsNeverLoseAWakeUp) {
  ThreadPool pool(2);
  std::array<std::array<int64_t, 8>, 2> calls{};  // a cache line each
  const int64_t runs = repeat_tiny_runs([&] {
    pool.run_on_all([&](int thread_index) { ++calls[static_cast<size_t>(thread_index)][0]; });
  });
  EXPECT_EQ(calls[0][0], runs);
  EXPECT_EQ(calls[1][0], runs);
}

TEST(ThreadPool, TinyParallelForsLoseNoPiece) {
  ThreadPool pool(2);
  std::array<int64_t, 16> visits{};
  const int64_t runs = repeat_tiny_runs([&] {
    pool.parallel_for(16, 1,
                      [&](int64_t begin, int64_t, int) { ++visits[static_cast<size_t>(begin)]; });
  });
  for (int64_t count : visits) EXPECT_EQ(count, runs);
}

TEST(ThreadPool, RunsAndParallelForsMayAlternate) {
  ThreadPool pool(3);
  for (int i = 0; i < 3000; ++i) {
    std::array<int, 3> calls{};
    std::array<int, 10> visits{};
    pool.parallel_for(10, 3, [&](int64_t begin, int64_t end, int) {
      for (int64_t k = begin; k < end; ++k) ++visits[static_cast<size_t>(k)];
    });
    pool.run_on_all([&](int thread_index) { ++calls[static_cast<size_t>(thread_index)]; });
    ASSERT_EQ(std::count(visits.begin(), visits.end(), 1), 10);
    ASSERT_EQ(std::count(calls.begin(), calls.end(), 1), 3);
  }
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(3);
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> calls{0};
    pool.run_on_all([&](int) { ++calls; });
    ASSERT_EQ(calls, 3);
  }
}

// The caller sleeps, too, when a worker takes long.
TEST(ThreadPool, TheCallerWaitsForASlowWorker) {
  ThreadPool pool(3);
  std::atomic<int> finished{0};
  pool.run_on_all([&](int thread_index) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * thread_index));
    ++finished;
  });
  EXPECT_EQ(finished, 3);
}

TEST(ThreadPool, MoreThreadsThanCores) {
  ThreadPool pool(4 * usable_cores() + 3);
  for (int i = 0; i < 300; ++i) expect_every_index_once(pool, 777, 5);
  std::atomic<int> calls{0};
  for (int i = 0; i < 300; ++i) pool.run_on_all([&](int) { ++calls; });
  EXPECT_EQ(calls, 300 * pool.num_threads());
}

TEST(ThreadPool, PoolsOnSeveralThreadsAtOnce) {
  std::vector<std::thread> owners;
  std::array<int64_t, 3> sums{};
  for (size_t owner = 0; owner < sums.size(); ++owner) {
    owners.emplace_back([&, owner] {
      ThreadPool pool(2);
      std::atomic<int64_t> sum{0};
      for (int i = 0; i < 500; ++i) {
        pool.parallel_for(100, 9, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
      }
      sums[owner] = sum;
    });
  }
  for (std::thread& owner : owners) owner.join();
  for (int64_t sum : sums) EXPECT_EQ(sum, 50'000);
}

TEST(ThreadPool, APoolMayMoveFromOneOwnerToAnother) {
  ThreadPool pool(2);
  int64_t sum = 0;
  for (int i = 0; i < 20; ++i) {
    std::thread owner([&] {
      std::array<int64_t, 2> parts{};
      pool.run_on_all([&](int thread_index) { parts[static_cast<size_t>(thread_index)] = 1; });
      sum += parts[0] + parts[1];
    });
    owner.join();
  }
  EXPECT_EQ(sum, 40);
}

TEST(ThreadPool, StartsAndStopsWithAndWithoutWork) {
  for (int i = 0; i < 100; ++i) {
    ThreadPool pool(1 + i % 6);
    if (i % 2 == 0) expect_every_index_once(pool, 50, 3);
  }
}

TEST(ThreadPool, ZeroThreadsMeansOnePerUsableCore) {
  EXPECT_EQ(ThreadPool(0).num_threads(), usable_cores());
}

TEST(ThreadPool, RefusesImpossibleCounts) {
  for (int count : {-1, 1 << 20}) {
    expect_error(ErrorCode::invalid, {std::to_string(count)}, [&] { ThreadPool pool(count); });
  }
}

TEST(ThreadPool, WorkersTakeNoSignals) {
  ThreadPool pool(2);
  std::array<int, 2> blocked{};
  pool.run_on_all([&](int thread_index) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked[static_cast<size_t>(thread_index)] = sigismember(&mask, SIGINT);
  });
  EXPECT_EQ(blocked[0], 0);
  EXPECT_EQ(blocked[1], 1);
}

#if defined(__x86_64__)
// Every thread computes in the float mode of the thread that calls run, whatever it was before.
TEST(ThreadPool, AllThreadsHaveTheCallersFloatMode) {
  constexpr unsigned kModes[] = {0x1F80, 0x9FC0, 0x1F80, 0x7F80, 0x3F80, 0x1F80};
  const unsigned before = _mm_getcsr();
  ThreadPool pool(4);
  for (unsigned mode : kModes) {
    std::array<unsigned, 4> modes{};
    std::array<float, 4> halves{};
    _mm_setcsr(mode);
    pool.run_on_all([&](int thread_index) {
      const volatile float smallest_normal = std::numeric_limits<float>::min();
      halves[static_cast<size_t>(thread_index)] = smallest_normal * 0.5f;
      modes[static_cast<size_t>(thread_index)] = _mm_getcsr() & ~0x3Fu;
    });
    _mm_setcsr(before);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(modes[i], mode);
      EXPECT_EQ(halves[i] == 0.0f, (mode & 0x8000) != 0);
    }
  }
}
#endif

TEST(UsableCores, FollowsTheAffinityMask) {
  const int all = usable_cores();
  ASSERT_GE(all, 1);
  ASSERT_LE(all, static_cast<int>(std::thread::hardware_concurrency()));
  std::thread([] {  // the mask is the thread's own
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    EXPECT_EQ(usable_cores(), 1);
  })
      .join();
  EXPECT_EQ(usable_cores(), all);
}

}  // namespace
}  // namespace paceline
