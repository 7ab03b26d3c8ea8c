// ThreadPool runs one job on a fixed set of threads; results never depend on which thread computes
// which part.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace paceline {

// Work is split over threads by output, never by reduction, so the results don't depend on the
// count. run() and parallel_for() may be called by one thread at a time (the pool's owner), which
// takes part as thread 0. Workers spin briefly for the next job, then sleep, so an idle pool costs
// nothing and other processes get the cores.
class ThreadPool {
 public:
  // A job: called once per thread with its index in [0, num_threads).
  using Job = void (*)(void* context, int thread_index);

  // Whether workers may move between cores. Pinned, worker i stays on processor i of
  // processors_by_core(), if there are enough. The calling thread isn't pinned: threads that it
  // starts would inherit its affinity.
  enum class Pinning : bool { none, pinned };

  // At least one thread; 0 means one per usable core.
  explicit ThreadPool(int num_threads, Pinning pinning = Pinning::none);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls job(context, i) for every thread index and returns when all are done. Jobs must not
  // throw.
  void run(Job job, void* context);

  // Calls body(thread_index) on every thread.
  template <class Body>
  void run_on_all(Body&& body) {
    run([](void* context, int i) { (*static_cast<std::remove_reference_t<Body>*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Calls body(begin, end, thread_index) for all of [0, count): each thread first takes its static
  // share in pieces of `grain`, then steals pieces that others have not begun.
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) {
    if (count <= 0) return;
    if (num_threads_ == 1 || count <= grain) {
      body(int64_t{0}, count, 0);
      return;
    }
    begin_pieces(count, grain);
    run_on_all([&](int thread_index) {
      int64_t begin = 0, end = 0;
      while (take_piece(thread_index, begin, end)) body(begin, end, thread_index);
    });
  }

 private:
  struct State;

  void begin_pieces(int64_t count, int64_t grain);
  bool take_piece(int thread_index, int64_t& begin, int64_t& end);

  int num_threads_;
  std::unique_ptr<State> state_;
};

// The number of cores this process may use (its affinity mask and cgroup quota).
int usable_cores();

}  // namespace paceline
