#include "server/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace paceline {
namespace {

// Seconds since 1970 at which the machine was booted.
double boot_time() {
  std::ifstream stat("/proc/stat");
  for (std::string line; std::getline(stat, line);) {
    std::istringstream words(line);
    std::string name;
    double seconds = 0;
    if (words >> name && name == "btime" && words >> seconds) return seconds;
  }
  return 0;
}

// The fields of /proc/self/stat (proc(5)) from the third on; the second is a name in parentheses
// that may hold anything.
std::vector<double> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream words(text.substr(end + 1));
  std::string state;
  words >> state;
  std::vector<double> fields = {0};
  for (double number = 0; words >> number;) fields.push_back(number);
  return fields;
}

int64_t count_descriptors() {
  std::error_code error;
  int64_t count = 0;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) ++count;
  return count > 0 ? count - 1 : 0;  // the iterator's own
}

}  // namespace

ProcessStats process_stats() {
  constexpr size_t kFirst = 3, kUser = 14, kSystem = 15, kStart = 22, kVirtual = 23, kResident = 24;
  ProcessStats stats{.open_descriptors = count_descriptors()};
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    stats.max_descriptors = static_cast<int64_t>(limit.rlim_cur);
  }
  const std::vector<double> fields = stat_fields();
  if (fields.size() <= kResident - kFirst) return stats;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  stats.cpu_seconds = (fields[kUser - kFirst] + fields[kSystem - kFirst]) / ticks;
  stats.start_time = boot_time() + fields[kStart - kFirst] / ticks;
  stats.virtual_bytes = static_cast<int64_t>(fields[kVirtual - kFirst]);
  stats.resident_bytes = static_cast<int64_t>(fields[kResident - kFirst]) * ::sysconf(_SC_PAGESIZE);
  return stats;
}

}  // namespace paceline
