// A driver of NVIDIA's interface whose GPU is the emulation.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/driver_api.h"
#include "kernels/cuda/launch.h"

namespace paceline::cuda::testing {

// One at a time: the functions of a DriverApi have no place for more.
class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const DriverApi& api() const { return api_; }

  // The next call of this name returns `result`.
  void fail_next(std::string call, DriverResult result);
  // Kernels that the loaded module has.
  template <class Kernel>
  void add_kernel() {
    kernels.push_back({kernel_entry<Kernel>(), sizeof(typename Kernel::Params)});
  }
  int count_of(const std::string& call) const;

  struct Kernel {
    KernelEntry entry;
    size_t param_bytes = 0;
  };
  std::vector<Kernel> kernels;
  std::unique_ptr<CudaDevice> device;
  int num_contexts = 0;
  int num_streams = 0;
  int num_modules = 0;
  int num_graphs = 0;
  int num_events = 0;
  std::unique_ptr<CudaGraph> captured;  // and not destroyed

  // What a call begins with: its result is not 0 where it is to fail.
  DriverResult begin(const char* call);

 private:
  DriverApi api_;
  std::vector<std::string> calls_;
  std::string failing_call_;
  DriverResult failing_result_ = 0;
};

}  // namespace paceline::cuda::testing
