// MemoryWatch sees how near the process is to the memory it may take.
#pragma once

#include <chrono>
#include <cstdint>

namespace paceline {

// One thread.
class MemoryWatch {
 public:
  // In bytes; 0: what the cgroup allows, else what the machine has.
  explicit MemoryWatch(int64_t limit);

  // Looks again, at most once a second. From 95 % of the limit on, freed memory goes back to the
  // system; at 98 % it is full, and stays so until it is under 95 %.
  void look();
  // With what is in use as an argument, for tests.
  void see(int64_t used);

  bool is_full() const { return is_full_; }
  // Resident pages that belong to no file: mapped weights can be dropped and read again.
  int64_t used() const { return used_; }
  int64_t limit() const { return limit_; }

 private:
  int64_t limit_;
  int64_t used_ = 0;
  bool is_full_ = false;
  std::chrono::steady_clock::time_point looked_at_;
  std::chrono::steady_clock::time_point trimmed_at_;
};

}  // namespace paceline
