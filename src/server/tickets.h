// Tickets bound how many requests are between their first header and their last event.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace paceline {

// One thread. When all are taken nobody gets one until a fifth is back, so that a full server
// doesn't refuse and admit in turns.
class Tickets {
 public:
  explicit Tickets(int64_t limit) : limit_(limit) {}

  // Goes back when the last holder lets go; nullptr when there is none. May outlive this.
  std::shared_ptr<void> take();

  int64_t num_taken() const { return *num_taken_; }
  int64_t limit() const { return limit_; }
  // For how long everybody has been refused; 0 while there is room.
  std::chrono::duration<double> full_for() const;

 private:
  bool has_room_again() const;

  int64_t limit_;
  bool shedding_ = false;
  std::chrono::steady_clock::time_point full_since_;
  std::shared_ptr<int64_t> num_taken_ = std::make_shared<int64_t>(0);
};

// BodyBytes bound what the bodies of requests take that haven't become prompts yet. One thread.
class BodyBytes {
 public:
  explicit BodyBytes(int64_t limit) : limit_(limit) {}

  // Given back when the last holder lets go; nullptr when there is no room. One body finds room
  // whatever its size. May outlive this.
  std::shared_ptr<void> take(int64_t num_bytes);

  int64_t num_taken() const { return *num_taken_; }
  int64_t limit() const { return limit_; }

 private:
  int64_t limit_;
  std::shared_ptr<int64_t> num_taken_ = std::make_shared<int64_t>(0);
};

}  // namespace paceline
