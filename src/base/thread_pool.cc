#include "base/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/processors.h"
#include "base/start_thread.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline {
namespace {

constexpr int kMaxThreads = 1024;
// Longer than the pause between two operators of a decode step, too short to matter when idle.
constexpr std::chrono::microseconds kSpin{50};
constexpr size_t kCacheLine = 64;

#if defined(__x86_64__)
constexpr unsigned kExceptionFlags = 0x3F;  // sticky: set by arithmetic, no part of the mode
void cpu_pause() { _mm_pause(); }
// Rounding mode, flush-to-zero, denormals-are-zero and exception masks of the calling thread.
unsigned float_mode() { return _mm_getcsr() & ~kExceptionFlags; }
void set_float_mode(unsigned mode) {
  if (float_mode() != mode) _mm_setcsr(mode);
}
#else
void cpu_pause() { std::this_thread::yield(); }
unsigned float_mode() { return 0; }
void set_float_mode(unsigned) {}
#endif

// Waits until `word` differs from `old`: spins for `spin`, then sleeps. Returns the new value.
uint32_t wait_while_equal(const std::atomic<uint32_t>& word, uint32_t old,
                          std::chrono::nanoseconds spin) {
  uint32_t value = word.load(std::memory_order_acquire);
  if (value == old && spin.count() > 0) {
    const auto deadline = std::chrono::steady_clock::now() + spin;
    do {
      for (int i = 0; i < 8 && value == old; ++i) {
        cpu_pause();
        value = word.load(std::memory_order_acquire);
      }
    } while (value == old && std::chrono::steady_clock::now() < deadline);
  }
  while (value == old) {
    word.wait(old, std::memory_order_acquire);
    value = word.load(std::memory_order_acquire);
  }
  return value;
}

// Blocks signals: handlers run on the program's own threads, never on a worker.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// If the processor has gone offline, the system places the thread.
void pin_thread(pthread_t thread, int processor) {
  const auto index = static_cast<size_t>(processor);
  cpu_set_t* const set = CPU_ALLOC(index + 1);
  if (set == nullptr) return;
  const size_t bytes = CPU_ALLOC_SIZE(index + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(index, bytes, set);
  pthread_setaffinity_np(thread, bytes, set);
  CPU_FREE(set);
}

// Of one thread, on a cache line of its own.
struct alignas(kCacheLine) ThreadSlot {
  std::atomic<int64_t> next_piece{0};  // the first piece of its share that no thread has claimed
  int64_t end_piece = 0;
  std::atomic<uint32_t> claimed_run{
      0};  // the last run that was begun, or given up, for this thread

  // True for exactly one caller per run. Runs only move forward, so a thread that looks late loses.
  bool claim(uint32_t run_number) {
    uint32_t claimed = claimed_run.load(std::memory_order_relaxed);
    while (static_cast<int32_t>(run_number - claimed) > 0) {
      if (claimed_run.compare_exchange_weak(claimed, run_number, std::memory_order_acq_rel)) {
        return true;
      }
    }
    return false;
  }
};

}  // namespace

struct ThreadPool::State {
  alignas(kCacheLine) std::atomic<uint32_t> run_number{0};
  std::atomic<bool> stopping{false};
  // The job of the current run: written before run_number moves, read by those who claimed the run.
  Job job = nullptr;
  void* context = nullptr;
  unsigned job_float_mode = 0;
  int64_t count = 0;
  int64_t grain = 1;
  bool has_pieces = false;  // the next run is a parallel_for

  alignas(kCacheLine) std::atomic<uint32_t> num_unfinished{0};  // workers whose part is still due
  std::vector<ThreadSlot> slots;
  std::chrono::nanoseconds spin{0};
  std::vector<std::thread> workers;

  explicit State(int num_threads) : slots(static_cast<size_t>(num_threads)) {}

  // An exception in any thread ends the program: other threads still use the objects it would
  // unwind.
  void do_part(int thread_index) noexcept { job(context, thread_index); }

  void finish_part() {
    if (num_unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) num_unfinished.notify_one();
  }

  void work(int thread_index) {
    ThreadSlot& slot = slots[static_cast<size_t>(thread_index)];
    uint32_t seen = 0;
    while (true) {
      seen = wait_while_equal(run_number, seen, spin);
      if (stopping.load(std::memory_order_relaxed)) return;
      if (!slot.claim(seen)) continue;
      set_float_mode(job_float_mode);
      do_part(thread_index);
      finish_part();
    }
  }

  void stop() {
    stopping.store(true, std::memory_order_relaxed);
    run_number.fetch_add(1, std::memory_order_seq_cst);
    run_number.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
};

ThreadPool::ThreadPool(int num_threads, Pinning pinning) {
  if (num_threads < 0 || num_threads > kMaxThreads) {
    throw Error(ErrorCode::invalid,
                fmt::format("thread pool: {} threads, expected 0 (one per usable "
                            "core) to {}",
                            num_threads, kMaxThreads));
  }
  const int num_cores = usable_cores();
  num_threads_ = num_threads == 0 ? std::min(num_cores, kMaxThreads) : num_threads;
  state_ = std::make_unique<State>(num_threads_);
  // With fewer cores than threads, spinning takes the core from the thread that it waits for.
  if (num_threads_ <= num_cores) state_->spin = kSpin;
  std::vector<int> processors;
  if (pinning == Pinning::pinned) processors = processors_by_core();
  const SignalsBlocked blocked;
  State* const state = state_.get();
  try {
    for (int i = 1; i < num_threads_; ++i) {
      state->workers.emplace_back([state, i] { state->work(i); });
      const pthread_t worker = state->workers.back().native_handle();
      pthread_setname_np(worker, fmt::format("compute-{}", i).c_str());
      if (static_cast<size_t>(i) < processors.size()) {
        pin_thread(worker, processors[static_cast<size_t>(i)]);
      }
    }
  } catch (const std::system_error& error) {
    state->stop();
    throw Error(ErrorCode::exhausted,
                fmt::format("{} of {} threads (--threads) could be started: {}",
                            state->workers.size() + 1, num_threads_, thread_refusal(error)));
  }
}

ThreadPool::~ThreadPool() { state_->stop(); }

void ThreadPool::run(Job job, void* context) {
  State& state = *state_;
  const bool has_pieces = std::exchange(state.has_pieces, false);
  state.job = job;
  state.context = context;
  if (num_threads_ == 1) {
    state.do_part(0);
    return;
  }
  state.job_float_mode = float_mode();
  state.num_unfinished.store(static_cast<uint32_t>(num_threads_ - 1), std::memory_order_relaxed);
  const uint32_t run_number = state.run_number.fetch_add(1, std::memory_order_seq_cst) + 1;
  state.run_number.notify_all();
  state.do_part(0);
  // No piece is left to begin: a worker that hasn't woken up has nothing to do, and the caller
  // doesn't wait for it.
  if (has_pieces) {
    for (int i = 1; i < num_threads_; ++i) {
      if (state.slots[static_cast<size_t>(i)].claim(run_number)) state.finish_part();
    }
  }
  uint32_t unfinished = state.num_unfinished.load(std::memory_order_acquire);
  while (unfinished != 0) {
    unfinished = wait_while_equal(state.num_unfinished, unfinished, state.spin);
  }
}

void ThreadPool::begin_pieces(int64_t count, int64_t grain) {
  State& state = *state_;
  state.count = count;
  state.grain = std::max<int64_t>(grain, 1);
  state.has_pieces = true;
  const int64_t num_pieces = (count - 1) / state.grain + 1;
  const int64_t share = num_pieces / num_threads_;
  const int64_t longer_shares = num_pieces % num_threads_;
  int64_t first = 0;
  for (int i = 0; i < num_threads_; ++i) {
    ThreadSlot& slot = state.slots[static_cast<size_t>(i)];
    slot.next_piece.store(first, std::memory_order_relaxed);
    first += share + (i < longer_shares ? 1 : 0);
    slot.end_piece = first;
  }
}

bool ThreadPool::take_piece(int thread_index, int64_t& begin, int64_t& end) {
  State& state = *state_;
  int owner = thread_index;
  for (int i = 0; i < num_threads_; ++i) {
    ThreadSlot& slot = state.slots[static_cast<size_t>(owner)];
    // Reading first keeps finished threads from writing to the cache lines of busy ones.
    if (slot.next_piece.load(std::memory_order_relaxed) < slot.end_piece) {
      const int64_t piece = slot.next_piece.fetch_add(1, std::memory_order_relaxed);
      if (piece < slot.end_piece) {
        begin = piece * state.grain;
        end = begin + std::min(state.grain, state.count - begin);
        return true;
      }
    }
    if (++owner == num_threads_) owner = 0;
  }
  return false;
}

namespace {

int affinity_cores() {
  const auto num_allowed = static_cast<int>(allowed_processors().size());
  if (num_allowed > 0) return num_allowed;
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

// The cores that a cpu.max file ("max 100000" or "150000 100000") grants; `otherwise` without a
// limit. Rounded down: a throttled thread holds up all others at the end of every operator.
int quota_cores(const std::string& path, int otherwise) {
  std::ifstream file(path);
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return otherwise;
  return std::max(1, static_cast<int>(std::min(quota / period, double{kMaxThreads})));
}

// This process's group in the cgroup v2 hierarchy, "/" for the root; empty when there is none.
std::string cgroup_path() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return {};
}

}  // namespace

int usable_cores() {
  int num_cores = affinity_cores();
  // A quota limits all groups below it, so all ancestors count, up to the root (the empty path).
  std::string group = cgroup_path();
  if (group == "/") group.clear();
  while (true) {
    num_cores = std::min(num_cores, quota_cores("/sys/fs/cgroup" + group + "/cpu.max", num_cores));
    if (group.empty()) return num_cores;
    group.resize(group.find_last_of('/'));
  }
}

}  // namespace paceline
