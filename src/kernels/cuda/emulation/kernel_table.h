// The kernels that the emulation can launch, by name: those of code/kernel_list.h, and a test's
// own.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include "kernels/cuda/code/kernel_entry.h"

namespace paceline::cuda::emulation {

struct EmulatedKernel {
  std::string_view name;
  size_t param_bytes = 0;
  size_t shared_bytes = 0;
  size_t shared_alignment = 1;
  void (*run)(const void* params, void* shared) = nullptr;  // one thread
};

template <class Kernel>
constexpr EmulatedKernel emulated_kernel() {
  using Params = typename Kernel::Params;
  using Shared = typename Kernel::Shared;
  return {.name = Kernel::kName,
          .param_bytes = sizeof(Params),
          .shared_bytes = std::is_empty_v<Shared> ? 0 : sizeof(Shared),
          .shared_alignment = alignof(Shared),
          .run = [](const void* params, void* shared) {
            run_kernel<Kernel>(*static_cast<const Params*>(params), *static_cast<Shared*>(shared));
          }};
}

// nullptr when there is none of this name.
const EmulatedKernel* find_kernel(std::string_view name);

// Adds a kernel whose name stays valid. Called while static objects are made, by an object at
// namespace scope in a test's source.
void add_kernel(const EmulatedKernel& kernel);
template <class Kernel>
struct AddedKernel {
  AddedKernel() { add_kernel(emulated_kernel<Kernel>()); }
};

}  // namespace paceline::cuda::emulation
