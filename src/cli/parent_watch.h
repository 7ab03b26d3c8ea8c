// ParentWatch stops this process when the one that started it has ended, however it ended.
#pragma once

#include <thread>

namespace paceline {

// Sends SIGTERM to this process when the thread that started it ends (Linux's PR_SET_PDEATHSIG), or
// when standard input ends: the parent holds the other end of a pipe. What comes in on it is
// ignored.
class ParentWatch {
 public:
  // Throws Error invalid when standard input can't tell: a file, /dev/null.
  ParentWatch();
  ~ParentWatch();
  ParentWatch(const ParentWatch&) = delete;
  ParentWatch& operator=(const ParentWatch&) = delete;

 private:
  void watch() const;

  int wake_fd_ = -1;
  std::jthread watcher_;
};

}  // namespace paceline
