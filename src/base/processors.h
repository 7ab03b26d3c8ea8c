// The processors that this process may run on.
#pragma once

#include <filesystem>
#include <vector>

namespace paceline {

// The affinity mask, in ascending order; empty where the system doesn't say.
std::vector<int> allowed_processors();

// The same in the order in which computing threads take them: first one of each core, then the
// hyperthreads that are left. Reads `root`/sys/devices/system/cpu (kernel documentation:
// admin-guide/cputopology.rst); a processor without an entry counts as a core.
std::vector<int> processors_by_core(const std::filesystem::path& root = "/");

}  // namespace paceline
