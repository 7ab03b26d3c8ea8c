// Limits of what requests hold together.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace paceline {

// BytesLimit bounds the memory that requests hold together for one purpose: their bodies, or large
// responses. One thread.
class BytesLimit {
 public:
  explicit BytesLimit(int64_t limit) : limit_(limit) {}

  // Released by its last holder; nullptr without room. The first holder is admitted whatever its
  // size. May outlive this.
  std::shared_ptr<void> acquire(int64_t num_bytes);

  int64_t num_held() const { return *num_held_; }
  int64_t limit() const { return limit_; }

 private:
  int64_t limit_;
  std::shared_ptr<int64_t> num_held_ = std::make_shared<int64_t>(0);
};

// InFlightLimit bounds how many requests are in flight: between their header and their last event.
// One thread. Once the limit is reached no permit is given until a fifth has been released, so that
// a full server does not alternate between refusing and admitting.
class InFlightLimit {
 public:
  explicit InFlightLimit(int64_t limit) : permits_(limit) {}

  // A permit, released by its last holder; nullptr when there is none. May outlive this.
  std::shared_ptr<void> acquire();

  int64_t num_in_flight() const { return permits_.num_held(); }
  int64_t limit() const { return permits_.limit(); }
  // How long every request has been refused; 0 while permits are given.
  std::chrono::duration<double> full_for() const;

 private:
  bool has_room_again() const;

  BytesLimit permits_;  // of one each
  bool is_shedding_ = false;
  std::chrono::steady_clock::time_point full_since_;
};

}  // namespace paceline
