// ProgressBar shows the progress, rate and remaining time of long work.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

// One line on standard error, redrawn at most ten times a second and wiped at the end.
class ProgressBar {
 public:
  // Writes nothing unless `shown` (on a terminal). `title` stands in front.
  ProgressBar(bool shown, std::string_view unit, int64_t total, std::string_view title = "");
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(int64_t done);
  void update(int64_t done, int64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  bool shown_;
  std::string unit_;
  std::string title_;
  int64_t total_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_draw_ = start_;
};

// Wipes the line of a bar that is shown, before another thread ends the process.
void wipe_progress();

// "[#######-------------]  35%  1,234 tok/s  0:42 left"; without a total (0) the count and the
// rate.
std::string progress_line(std::string_view unit, int64_t done, int64_t total, double seconds);

}  // namespace paceline
