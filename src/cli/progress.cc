#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

#include "cli/figures.h"

namespace paceline {
namespace {

constexpr int kBarWidth = 24;
constexpr std::chrono::milliseconds kInterval{100};
std::atomic<int> num_shown = 0;

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string progress_line(std::string_view unit, int64_t done, int64_t total, double seconds) {
  if (total == 0) {
    const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    return fmt::format("{} {}  {} {}/s", done, unit, grouped_number(rate), unit);
  }
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const int filled = std::clamp(static_cast<int>(share * kBarWidth), 0, kBarWidth);
  const std::string bar = std::string(static_cast<size_t>(filled), '#') +
                          std::string(static_cast<size_t>(kBarWidth - filled), '-');
  std::string line = fmt::format("[{}] {:3.0f}%", bar, 100 * share);
  if (done > 0 && seconds > 0) {
    const double rate = static_cast<double>(done) / seconds;
    line += fmt::format("  {} {}/s  {} left", grouped_number(rate), unit,
                        time_text(static_cast<double>(total - done) / rate));
  }
  return line;
}

ProgressBar::ProgressBar(bool shown, std::string_view unit, int64_t total, std::string_view title)
    : shown_(shown), unit_(unit), title_(title), total_(total) {
  if (shown_) ++num_shown;
  update(0);
}

ProgressBar::~ProgressBar() {
  if (!shown_) return;
  wipe_progress();
  --num_shown;
}

void wipe_progress() {
  if (num_shown == 0) return;
  // Not through stdio, which another thread may hold.
  constexpr std::string_view kWipe = "\r\x1b[K";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWipe.data(), kWipe.size());
}

void ProgressBar::update(int64_t done) { update(done, total_); }

void ProgressBar::update(int64_t done, int64_t total) {
  const auto now = Clock::now();
  if (!shown_ || now < next_draw_) return;
  next_draw_ = now + kInterval;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::fputs(("\r\x1b[K" + title_ + progress_line(unit_, done, total, seconds)).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace paceline
