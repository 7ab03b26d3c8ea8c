// LineWriter writes lines to a descriptor from a thread of its own, so that a reader who stops
// reading never blocks those who log.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace paceline {

class LineWriter {
 public:
  static constexpr size_t kMaxWaiting = 1 << 20;

  // At most `max_waiting` bytes of lines wait for the reader; further lines are dropped. The caller
  // keeps the descriptor.
  explicit LineWriter(int descriptor, size_t max_waiting = kMaxWaiting);
  // Waits up to a second for the reader.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // From any thread; never blocks. `line` has no line feed. When lines were dropped, a line with
  // their number follows as soon as there is room.
  void write(std::string_view line);

  // So far.
  int64_t num_dropped() const;

 private:
  void run();
  bool send(std::string_view text);

  const int descriptor_;
  const size_t max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;
  int64_t num_dropped_ = 0;
  int64_t num_unreported_ = 0;  // dropped since the last line that reported it
  bool is_stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace paceline
