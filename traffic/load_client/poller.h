// Poller waits for sockets and timers, in one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "traffic/tick_grid.h"

namespace paceline::traffic {

class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual void on_ready(uint32_t epoll_events) = 0;
};

class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Edge-triggered, for reading and writing, until the socket is closed. `pollable` must live until
  // the end of the round of on_ready calls that closed it (see defer).
  void add(int fd, Pollable& pollable);
  // Calls `work` once, not before `time`.
  void at(Clock::time_point time, std::function<void()> work);
  // Calls `work` after the current round.
  void defer(std::function<void()> work) { deferred_.push_back(std::move(work)); }

  // One round: waits at most until the next time, or `most`.
  void poll(std::chrono::milliseconds most);

 private:
  struct Timed {
    Clock::time_point time;
    int64_t number;  // orders timers of equal time
    std::function<void()> work;
    bool operator<(const Timed& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  void run_due();

  int epoll_fd_;
  int64_t num_timed_ = 0;
  std::priority_queue<Timed> timed_;
  std::vector<std::function<void()>> deferred_;
};

}  // namespace paceline::traffic
