#include "kernels/cuda/emulation/thread_state.h"

#include <fmt/format.h>

#include <cstring>

#include "kernels/cuda/emulation/block_run.h"
#include "kernels/cuda/emulation/mma_tile.h"
#include "kernels/cuda/emulation/report.h"

namespace paceline::cuda::emulation {
namespace {

BlockRun& run() { return *current_thread->block->run; }

void exchange_by_lane(LaneSlots& slots) {
  for (LaneSlot& slot : slots) slot.out[0] = slots[slot.in[1]].in[0];
}

void exchange_bits(LaneSlots& slots) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < 32; ++i) bits |= slots[i].in[0] << i;
  for (LaneSlot& slot : slots) slot.out[0] = bits;
}

// Each lane brings the address of a row in two words.
void transpose_matrices(LaneSlots& slots) {
  const auto element = [&slots](uint32_t lane, uint32_t index) {
    const uint64_t address = slots[lane].in[0] | uint64_t{slots[lane].in[1]} << 32;
    uint16_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const uint16_t*>(address) + index, sizeof(bits));
    return uint32_t{bits};
  };
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t matrix = 0; matrix < 4; ++matrix) {
      const uint32_t first = 8 * matrix + lane % 4 * 2;
      slots[lane].out[matrix] = element(first, lane / 4) | element(first + 1, lane / 4) << 16;
    }
  }
}

}  // namespace

void sync_block(CallSite site) { run().sync_block(site); }

void publish_writes(CallSite site) { run().publish_writes(site); }

void sync_warp(CallSite site) { run().sync_warp(site); }

void wait_for_earlier_kernels(CallSite site) { run().wait_for_earlier_kernels(site); }

uint32_t shuffle_bits(uint32_t bits, uint32_t lane, CallSite site) {
  LaneSlot& slot = run().warp_slot();
  slot.in[0] = bits;
  slot.in[1] = lane;
  run().wait_for_warp(&exchange_by_lane, site);
  return slot.out[0];
}

uint32_t ballot(bool condition, CallSite site) {
  LaneSlot& slot = run().warp_slot();
  slot.in[0] = condition ? 1 : 0;
  run().wait_for_warp(&exchange_bits, site);
  return slot.out[0];
}

void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], CallSite site) {
  LaneSlot& slot = run().warp_slot();
  for (size_t i = 0; i < 4; ++i) slot.in[i] = a[i];
  for (size_t i = 0; i < 2; ++i) slot.in[4 + i] = b[i];
  for (size_t i = 0; i < 4; ++i) slot.in[6 + i] = std::bit_cast<uint32_t>(d[i]);
  run().wait_for_warp(&multiply_tile, site);
  for (size_t i = 0; i < 4; ++i) d[i] = std::bit_cast<float>(slot.out[i]);
}

void load_transposed(uint32_t (&d)[4], const void* row, CallSite site) {
  run().check_shared(row, 16, "loads a matrix from", site);
  LaneSlot& slot = run().warp_slot();
  const uint64_t address = reinterpret_cast<uintptr_t>(row);
  slot.in[0] = static_cast<uint32_t>(address);
  slot.in[1] = static_cast<uint32_t>(address >> 32);
  run().wait_for_warp(&transpose_matrices, site);
  for (size_t i = 0; i < 4; ++i) d[i] = slot.out[i];
}

void copy_async(void* to, const void* from, bool is_present, CallSite site) {
  run().copy_async(to, from, is_present, site);
}

void commit_copies(CallSite /*site*/) { run().commit_copies(); }

void wait_copies(int pending, CallSite site) { run().wait_copies(pending, site); }

void init_barrier(const void* place, uint32_t arrivals) { run().init_barrier(place, arrivals); }

void arrive(const void* place, CallSite site) { run().arrive(place, 0, site); }

// Matrix instructions wait for all lanes here, so most kernels would be right without this wait.
void arrive_as_warp(const void* place, CallSite site) {
  run().wait_for_warp([](LaneSlots&) {}, site);
  if (current_thread->index % 32 == 0) run().arrive(place, 0, site);
}

void wait_barrier(const void* place, uint32_t parity, CallSite site) {
  run().wait_barrier(place, parity, site);
}

void begin_bulk(const void* place, uint32_t bytes, CallSite site) {
  if (current_thread->index % 32 == 0) run().arrive(place, bytes, site);
}

void copy_bulk(void* to, const void* from, uint32_t bytes, const void* place, CallSite site) {
  if (current_thread->index % 32 == 0) run().copy_bulk(to, from, bytes, place, site);
}

void begin_products() { run().group_products().begin(); }

void multiply_group(const GroupProduct& product) { run().multiply_group(product); }

void commit_products() { run().group_products().commit(); }

void wait_products(uint32_t pending, CallSite site) { run().wait_products(pending, site); }

void keep_operand(const uint32_t* a) { run().group_products().keep(a); }

void report_misaligned(const void* address, size_t alignment, CallSite site) {
  run().fail(fmt::format("thread {} takes address {} for a multiple of {} at {}",
                         current_thread->index, address, alignment, text_of(site)));
  run().abandon();
}

}  // namespace paceline::cuda::emulation
