// Which of the machine's processors this process may run on.
#pragma once

#include <filesystem>
#include <vector>

namespace paceline {

// The affinity mask, in ascending order; empty where the system doesn't say.
std::vector<int> allowed_processors();

// The same in the order in which threads that compute take them: one of each core, then the others
// of cores that run several threads at once. Reads `root`/sys/devices/system/cpu (kernel
// documentation: admin-guide/cputopology.rst); a core that isn't described is one of its own.
std::vector<int> processors_by_core(const std::filesystem::path& root = "/");

}  // namespace paceline
