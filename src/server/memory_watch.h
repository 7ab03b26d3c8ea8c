// MemoryWatch compares the memory of the process with its limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

namespace paceline {

// One thread.
class MemoryWatch {
 public:
  // In bytes; 0: the limit of the control group, else the machine's memory.
  explicit MemoryWatch(int64_t limit);

  // Measures at most once a second. From 95 % of the limit on a trim is due; it is full from 98 %
  // on, until the use falls below 95 %.
  void look();
  // Wraps the holder of large memory: after it is released, a trim is due at the next look(). May
  // outlive this.
  std::shared_ptr<void> trim_after(std::shared_ptr<void> holder);
  // As look(), with a given use; for tests.
  void see(int64_t used);

  // Freed memory should be returned to the system (malloc_trim), which takes 100 ms and more where
  // much has been freed.
  bool is_trim_due() const { return is_trim_due_; }
  void trim_has_begun();
  bool is_full() const { return is_full_; }
  // Resident anonymous pages; mapped weights can be evicted and read again.
  int64_t used() const { return used_; }
  int64_t limit() const { return limit_; }

 private:
  int64_t limit_;
  int64_t used_ = 0;
  bool is_full_ = false;
  bool is_trim_due_ = false;
  std::shared_ptr<bool> trims_ = std::make_shared<bool>(false);
  std::chrono::steady_clock::time_point looked_at_;
  std::chrono::steady_clock::time_point trimmed_at_;
};

}  // namespace paceline
