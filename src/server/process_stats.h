// What the system says of this process, as Prometheus' clients report it under process_*.
#pragma once

#include <cstdint>

namespace paceline {

struct ProcessStats {
  double cpu_seconds = 0;  // user and system
  double start_time = 0;   // seconds since 1970
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t open_descriptors = 0;
  int64_t max_descriptors = 0;
};

// From /proc/self and /proc/stat; what can't be read is 0.
ProcessStats process_stats();

}  // namespace paceline
