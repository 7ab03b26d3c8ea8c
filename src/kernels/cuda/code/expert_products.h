// Products of single rows with the matrices of their experts, which are chosen on the device: a row
// for each slot of the routing.
#pragma once

#include "kernels/cuda/code/kernel_name.h"
#include "kernels/cuda/code/matmul_few.h"
#include "kernels/cuda/code/matmul_few_codes.h"
#include "kernels/cuda/code/matmul_float.h"

namespace paceline::cuda {

// What an expert multiplies by a kernel of products: its parameters without rows.
template <class Kernel>
struct ExpertProduct {
  typename Kernel::Params params;
  uint32_t num_tiles = 0;  // of columns, along x of the grid; 0: another kernel multiplies it
};

// Runs the kernel for one row of each slot, along z of the grid, which none of these kernels uses.
template <class Kernel>
struct ExpertProducts {
  static constexpr KernelName kFullName{"expert_", Kernel::kName};
  static constexpr std::string_view kName = kFullName.text();
  static constexpr uint32_t kThreads = Kernel::kThreads;
  struct Params {
    const ExpertProduct<Kernel>* products = nullptr;  // [experts]
    uint32_t num_experts = 0;
    const int32_t* chosen = nullptr;  // [rows, slots]
    int64_t chosen_stride = 0;
    uint32_t num_slots = 1;
    uint32_t slots_of_input = 1;  // that share a row of x: all of a row, or one
    ConstRows x;
    Rows out;  // a row for each slot
  };
  using Shared = typename Kernel::Shared;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const uint32_t slot = block_index().z;
    const int64_t row = slot / p.num_slots;
    const auto expert = static_cast<uint32_t>(p.chosen[row * p.chosen_stride + slot % p.num_slots]);
    if (expert >= p.num_experts) return;
    const ExpertProduct<Kernel> product = p.products[expert];
    if (block_index().x >= product.num_tiles) return;
    typename Kernel::Params params = product.params;
    params.x = {p.x.row(slot / p.slots_of_input), p.x.stride};
    params.num_rows = 1;
    params.out = {p.out.row(slot), p.out.stride};
    Kernel::run(params, shared);
  }
};

}  // namespace paceline::cuda
