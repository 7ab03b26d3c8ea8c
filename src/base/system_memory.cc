#include "base/system_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGuess = int64_t{1} << 30;
constexpr int64_t kKibibyte = 1024;

// The number after `name` in a file of names and numbers; nullopt without one.
std::optional<int64_t> number_of(const fs::path& file, std::string_view name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t number = 0;
    if (words >> word && word == name && words >> number) return number;
  }
  return std::nullopt;
}

std::optional<int64_t> only_number(const fs::path& file) {
  int64_t number = 0;
  if (std::ifstream(file) >> number) return number;
  return std::nullopt;  // absent, or "max"
}

// The file names of one version of control groups.
struct GroupFiles {
  std::string_view mount;
  std::string_view limit;
  std::string_view used;
  std::string_view inactive;  // of memory.stat
};
constexpr GroupFiles kVersion2{"", "memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kVersion1{"memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};

void apply_limit(const fs::path& group, const GroupFiles& files, SystemMemory& memory) {
  const std::optional<int64_t> limit = only_number(group / files.limit);
  if (!limit || *limit >= memory.total) return;  // version 1 writes "no limit" as a huge number
  memory.total = *limit;
  const int64_t used = only_number(group / files.used).value_or(0);
  const int64_t inactive = number_of(group / "memory.stat", files.inactive).value_or(0);
  memory.free = std::min(memory.free, std::clamp(*limit - used + inactive, int64_t{0}, *limit));
}

// Applies the limits of the group and its ancestors. A container may see its own group as the root,
// or get a path that doesn't exist, so the root is always read.
void apply_limits(const fs::path& mount, std::string path, const GroupFiles& files,
                  SystemMemory& memory) {
  for (; path.size() > 1; path.resize(path.rfind('/'))) {
    apply_limit(fs::path(mount.string() + path), files, memory);
  }
  apply_limit(mount, files, memory);
}

// RLIMIT_AS, which bounds mapped files and stacks too; nothing when it is "unlimited".
std::optional<int64_t> address_space_limit(const fs::path& root) {
  constexpr std::string_view kName = "Max address space";
  std::ifstream limits(root / "proc/self/limits");
  for (std::string line; std::getline(limits, line);) {
    if (!line.starts_with(kName)) continue;
    int64_t soft = 0;
    if (std::istringstream(line.substr(kName.size())) >> soft) return soft;
  }
  return std::nullopt;
}

void apply_address_space(const fs::path& root, SystemMemory& memory) {
  const std::optional<int64_t> limit = address_space_limit(root);
  if (!limit) return;
  const int64_t used = number_of(root / "proc/self/status", "VmSize:").value_or(0) * kKibibyte;
  memory.total = std::min(memory.total, *limit);
  memory.free = std::min(memory.free, std::max(*limit - used, int64_t{0}));
}

bool has_controller(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == name) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

SystemMemory system_memory(const fs::path& root) {
  const fs::path meminfo = root / "proc/meminfo";
  SystemMemory memory;
  memory.total = number_of(meminfo, "MemTotal:").value_or(kGuess / kKibibyte) * kKibibyte;
  memory.free = number_of(meminfo, "MemAvailable:").value_or(kGuess / kKibibyte) * kKibibyte;
  // Lines of "id:controllers:path"; version 2 has id 0 and no controllers.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const bool is_version2 = controllers.empty();
    if (!is_version2 && !has_controller(controllers, "memory")) continue;
    const GroupFiles& files = is_version2 ? kVersion2 : kVersion1;
    apply_limits(root / "sys/fs/cgroup" / files.mount, line.substr(second + 1), files, memory);
  }
  apply_address_space(root, memory);
  return memory;
}

}  // namespace paceline
