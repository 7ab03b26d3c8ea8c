// The memory that this process may use: the machine's, or less where a control group (a container,
// a systemd unit) or a limit on its address space (ulimit -v) bounds it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace paceline {

// Bytes. A group's free memory counts what the kernel gives back first: file pages that have not
// been used for a while (inactive_file), as MemAvailable does for the machine.
struct SystemMemory {
  int64_t total = 0;  // of the machine, or the lowest limit
  int64_t free = 0;   // can be allocated without swapping, failing or being killed

  bool operator==(const SystemMemory&) const = default;
};

// Reads `root`/proc (self/limits and self/status too) and `root`/sys/fs/cgroup (version 2, or the
// memory controller of version 1; kernel documentation: admin-guide/cgroup-v2.rst,
// cgroup-v1/memory.rst). Without /proc: a guess of 1 GiB, which keeps defaults small.
SystemMemory system_memory(const std::filesystem::path& root = "/");

}  // namespace paceline
