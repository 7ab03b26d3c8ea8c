#include "base/processors.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>

namespace paceline {
namespace {

// The lowest processor of a core, which the list of its siblings ("0,64" or "0-1") begins with.
int first_sibling(const std::filesystem::path& root, int processor) {
  const std::string name =
      fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", processor);
  int first = processor;
  return std::ifstream(root / name) >> first ? first : processor;
}

}  // namespace

std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  // The kernel refuses sets smaller than its own, so grow until it agrees.
  for (int num_cpus = 1024; num_cpus <= (1 << 20); num_cpus *= 2) {
    cpu_set_t* const set = CPU_ALLOC(num_cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(num_cpus);
    const bool is_known = sched_getaffinity(0, bytes, set) == 0;
    for (int i = 0; is_known && i < num_cpus; ++i) {
      if (CPU_ISSET_S(static_cast<size_t>(i), bytes, set)) allowed.push_back(i);
    }
    CPU_FREE(set);
    if (is_known) break;
  }
  return allowed;
}

std::vector<int> processors_by_core(const std::filesystem::path& root) {
  std::vector<int> processors = allowed_processors();
  std::vector<int> cores;  // that already have a processor in the list
  std::vector<std::pair<bool, int>> order;
  for (const int processor : processors) {
    const int core = first_sibling(root, processor);
    const bool is_taken = std::find(cores.begin(), cores.end(), core) != cores.end();
    if (!is_taken) cores.push_back(core);
    order.emplace_back(is_taken, processor);
  }
  std::sort(order.begin(), order.end());
  std::transform(order.begin(), order.end(), processors.begin(),
                 [](const auto& entry) { return entry.second; });
  return processors;
}

}  // namespace paceline
