// The shared memory that kernels' blocks need: products that need much have others beside them for
// GPUs that have little (cuda_products.cc, tile_choice.h).
#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "kernels/cuda/code/kernel_list.h"
#include "kernels/cuda/device.h"

namespace paceline::cuda {
namespace {

struct KernelSize {
  std::string name;
  size_t shared_bytes;
};

template <class Kernel>
KernelSize size_of(std::string name) {
  using Shared = typename Kernel::Shared;
  return {std::move(name), std::is_empty_v<Shared> ? 0 : sizeof(Shared)};
}

std::vector<KernelSize> kernel_sizes() {
  return {
#define PACELINE_SIZE(name, ...) size_of<__VA_ARGS__>(#name),
      PACELINE_CUDA_KERNELS(PACELINE_SIZE)
#undef PACELINE_SIZE
  };
}

TEST(KernelSizes, OnlySomeProductsAndPromptsNeedMoreSharedMemoryThanSmallGpusHave) {
  constexpr size_t kOfAda = 99 * 1024;
  std::vector<std::string> large;
  for (const KernelSize& kernel : kernel_sizes()) {
    EXPECT_LE(kernel.shared_bytes, kMostSharedBytes) << kernel.name;
    if (kernel.shared_bytes > kOfAda) large.push_back(kernel.name);
  }
  EXPECT_EQ(large,
            (std::vector<std::string>{
                "attention_groups_bf16_64", "attention_groups_i8_64", "attention_groups_bf16_128",
                "attention_groups_i8_128", "attention_groups_bf16_192", "attention_groups_i8_192",
                "attention_groups_bf16_256", "attention_groups_i8_256", "gated_tile_64_rows",
                "gated_tile_128_rows", "gated_tile_192_rows", "matmul_128_columns_128_rows",
                "matmul_128_columns_192_rows", "few_codes_8_segments", "few_rows_8_segments"}));
}

}  // namespace
}  // namespace paceline::cuda
