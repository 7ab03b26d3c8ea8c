#include "server/memory_watch.h"

#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "base/system_memory.h"
#include "base/time_source.h"

namespace paceline {
namespace {

constexpr std::chrono::seconds kLookTime{1};
constexpr std::chrono::seconds kTrimTime{10};
constexpr double kTrimShare = 0.95;
constexpr double kFullShare = 0.98;

// "RssAnon:   1234 kB"; 0 when it is missing.
int64_t status_bytes(const std::string& name) {
  constexpr int64_t kKibibyte = 1024;
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t count = 0;
    if (word == name && status >> count) return count * kKibibyte;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

MemoryWatch::MemoryWatch(int64_t limit) : limit_(limit > 0 ? limit : system_memory().total) {}

std::shared_ptr<void> MemoryWatch::trim_after(std::shared_ptr<void> holder) {
  void* const held = holder.get();
  return {held, [holder = std::move(holder), trims = trims_](void*) mutable {
            holder = nullptr;
            *trims = true;
          }};
}

void MemoryWatch::look() {
  const auto now = Clock::now();
  if (now - looked_at_ < kLookTime) return;
  looked_at_ = now;
  see(status_bytes("RssAnon:"));
}

void MemoryWatch::see(int64_t used) {
  used_ = used;
  const double share = static_cast<double>(used) / static_cast<double>(limit_);
  is_full_ = share >= kFullShare || (is_full_ && share >= kTrimShare);
  const bool is_scarce = share >= kTrimShare && Clock::now() - trimmed_at_ >= kTrimTime;
  is_trim_due_ = is_trim_due_ || is_scarce || *trims_;
  *trims_ = false;
}

void MemoryWatch::trim_has_begun() {
  is_trim_due_ = false;
  trimmed_at_ = Clock::now();
}

}  // namespace paceline
