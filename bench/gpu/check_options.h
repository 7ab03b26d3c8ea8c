// The command line of paceline_gpu_check.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/device.h"

namespace paceline {

struct CheckOptions {
  std::vector<std::string> parts;
  bool emulated = false;  // the emulation in a GPU's place
  int device_index = 0;
  size_t every = 1;       // runs every Nth case
  double seconds = 120;   // after which a part begins no other case
  bool is_small = false;  // shapes that the emulation computes in a second

  std::unique_ptr<cuda::CudaDevice> open() const;
};

// Throws Error invalid.
CheckOptions read_check_options(int argc, char** argv);

// Whether a part's time is over.
class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  bool is_over() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

}  // namespace paceline
