// What the emulation knows of the thread that runs, and the operations that wait for others.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/code/index3.h"
#include "kernels/cuda/emulation/call_site.h"

namespace paceline::cuda::emulation {

class BlockRun;

struct BlockState {
  BlockRun* run = nullptr;
  Index3 block_index{};
  Index3 grid_size{};
};
struct ThreadState {
  const BlockState* block = nullptr;
  uint32_t index = 0;
};

// Of the fiber that this thread of the CPU runs.
inline constinit thread_local ThreadState* current_thread = nullptr;

void sync_block(CallSite site);
void publish_writes(CallSite site);
void sync_warp(CallSite site);
void wait_for_earlier_kernels(CallSite site);
uint32_t shuffle_bits(uint32_t bits, uint32_t lane, CallSite site);
uint32_t ballot(bool condition, CallSite site);
void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], CallSite site);
void load_transposed(uint32_t (&d)[4], const void* row, CallSite site);
void copy_async(void* to, const void* from, bool is_present, CallSite site);
void commit_copies(CallSite site);
void wait_copies(int pending, CallSite site);
// Of a barrier in shared memory, which BlockRun identifies by its place (CopyBarriers).
void init_barrier(const void* place, uint32_t arrivals);
void arrive(const void* place, CallSite site);
void arrive_as_warp(const void* place, CallSite site);
void wait_barrier(const void* place, uint32_t parity, CallSite site);
void begin_bulk(const void* place, uint32_t bytes, CallSite site);
void copy_bulk(void* to, const void* from, uint32_t bytes, const void* place, CallSite site);
// Products of a warpgroup (GroupProducts).
struct GroupProduct;
void begin_products();
void multiply_group(const GroupProduct& product);
void commit_products();
void wait_products(uint32_t pending, CallSite site);
void keep_operand(const uint32_t* a);
// Ends the launch with a report.
[[gnu::cold]] void report_misaligned(const void* address, size_t alignment, CallSite site);

template <class T>
T shuffle_value(T value, uint32_t lane, CallSite site) {
  static_assert(sizeof(T) == 4, "a shuffle moves 4 bytes");
  return std::bit_cast<T>(shuffle_bits(std::bit_cast<uint32_t>(value), lane, site));
}
inline void check_alignment(const void* address, size_t alignment, CallSite site) {
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0) [[unlikely]] {
    report_misaligned(address, alignment, site);
  }
}

}  // namespace paceline::cuda::emulation
