#include "server/memory_watch.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLookTime{1};
constexpr std::chrono::seconds kTrimTime{10};
constexpr double kTrimShare = 0.95;
constexpr double kFullShare = 0.98;

// "RssAnon:   1234 kB"; 0 when it isn't said.
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

// The limit of cgroups version 2 for this process and those around it, if one is set.
int64_t cgroup_bytes() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(groups, line)) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  int64_t least = std::numeric_limits<int64_t>::max();
  while (!path.empty()) {
    int64_t bytes = 0;
    if (std::ifstream("/sys/fs/cgroup" + path + "/memory.max") >> bytes) {
      least = std::min(least, bytes);
    }
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return least;
}

int64_t machine_bytes() {
  return static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

MemoryWatch::MemoryWatch(int64_t limit)
    : limit_(limit > 0 ? limit : std::min(cgroup_bytes(), machine_bytes())) {}

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
  const auto now = Clock::now();
  if (share < kTrimShare || now - trimmed_at_ < kTrimTime) return;
  trimmed_at_ = now;
  ::malloc_trim(0);
}

}  // namespace paceline
