// StepTurns lets engines that share a machine step one at a time, in the order in which they asked.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace paceline {

class StepTurns {
 public:
  // Any thread. Calls `step` when its turn comes, and returns what it returns.
  template <class Step>
  bool take(const Step& step) {
    const Turn turn(*this);
    return step();
  }

 private:
  struct Turn {
    explicit Turn(StepTurns& all) : turns(all) {
      std::unique_lock lock(turns.mutex_);
      const uint64_t own = turns.next_++;
      turns.moved_.wait(lock, [&] { return turns.now_ == own; });
    }
    ~Turn() {
      const std::lock_guard lock(turns.mutex_);
      if (++turns.now_ != turns.next_) turns.moved_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    StepTurns& turns;
  };

  std::mutex mutex_;
  std::condition_variable moved_;
  uint64_t next_ = 0;  // the next one's that asks
  uint64_t now_ = 0;   // whose turn it is
};

}  // namespace paceline
