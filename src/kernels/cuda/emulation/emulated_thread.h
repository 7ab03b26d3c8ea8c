// The functions of code/device_code.h as the emulation has them: a thread is a fiber, and what
// needs other threads waits for them. Each call that can go wrong carries its source line.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/code/core_matrices.h"
#include "kernels/cuda/code/index3.h"
#include "kernels/cuda/emulation/bf16_bits.h"
#include "kernels/cuda/emulation/call_site.h"
#include "kernels/cuda/emulation/group_products.h"
#include "kernels/cuda/emulation/thread_state.h"

#define PL_DEVICE inline
#define PL_UNROLL
#define PL_ROLLED

namespace paceline::cuda {

inline uint32_t thread_index() { return emulation::current_thread->index; }
inline Index3 block_index() { return emulation::current_thread->block->block_index; }
inline Index3 grid_size() { return emulation::current_thread->block->grid_size; }

// Waits until all threads of the block are here. What they wrote before is then visible to all.
inline void sync_threads(emulation::CallSite site = emulation::CallSite::here()) {
  emulation::sync_block(site);
}
// The same, and other blocks see what the block wrote before they see what a thread of it writes
// after. Blocks don't meet here, so nothing shows its absence: tests don't leave it out.
inline void publish_writes(emulation::CallSite site = emulation::CallSite::here()) {
  emulation::publish_writes(site);
}
// The same as sync_threads() for the lanes of a warp.
inline void sync_warp(emulation::CallSite site = emulation::CallSite::here()) {
  emulation::sync_warp(site);
}

// A kernel may begin before the one in front of it has ended, once all blocks of that have begun
// and called begin_later_kernels(), or ended (programmatic dependent launch; PTX ISA,
// griddepcontrol). What earlier kernels write may be read, and what they read written, behind the
// wait alone, and some thread of each block waits. Each kernel's entry has both calls at its
// beginning (kernel_entry.h), unless the kernel says kWaitsItself, and calls them, or kBeginsLate:
// it begins behind the others.
inline void begin_later_kernels() {}
inline void wait_for_earlier_kernels(emulation::CallSite site = emulation::CallSite::here()) {
  emulation::wait_for_earlier_kernels(site);
}

// The value of another lane of the warp: `lane`, the own one xor `mask`, the own one plus `delta`
// (the own value where there is no such lane). T is float, int32_t or uint32_t.
template <class T>
T shuffle(T value, uint32_t lane, emulation::CallSite site = emulation::CallSite::here()) {
  return emulation::shuffle_value(value, lane % 32, site);
}
template <class T>
T shuffle_xor(T value, uint32_t mask, emulation::CallSite site = emulation::CallSite::here()) {
  return emulation::shuffle_value(value, (emulation::current_thread->index ^ mask) % 32, site);
}
template <class T>
T shuffle_down(T value, uint32_t delta, emulation::CallSite site = emulation::CallSite::here()) {
  const uint32_t lane = emulation::current_thread->index % 32;
  return emulation::shuffle_value(value, lane + delta < 32 ? lane + delta : lane, site);
}
// Bit i is the condition of lane i.
inline uint32_t ballot(bool condition, emulation::CallSite site = emulation::CallSite::here()) {
  return emulation::ballot(condition, site);
}
inline bool any(bool condition, emulation::CallSite site = emulation::CallSite::here()) {
  return emulation::ballot(condition, site) != 0;
}
inline bool all(bool condition, emulation::CallSite site = emulation::CallSite::here()) {
  return emulation::ballot(condition, site) == 0xFFFFFFFFu;
}

// d += a b for a tile of 16 x 8: mma.sync.m16n8k16 of bfloat16 pairs, sums in float32. With
// g = lane / 4 and t = lane % 4, as (row, column):
//   a: (g, 2t..2t+1), (g + 8, 2t..), (g, 2t + 8..), (g + 8, 2t + 8..)     of 16 x 16
//   b: (2t..2t+1, g), (2t + 8.., g)                                       of 16 x 8
//   d: (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)                 of 16 x 8
// A pair's first element is in the low half.
inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     emulation::CallSite site = emulation::CallSite::here()) {
  emulation::mma_bf16(d, a, b, site);
}

// Four matrices of 8 x 8 elements of 16 bits in shared memory, transposed: lane 8 i + j says where
// row j of matrix i begins, at a multiple of 16 bytes. d[i] is a pair of columns of its rows: (2t,
// g) and (2t + 1, g), as mma_bf16() takes them of b.
inline void load_transposed(uint32_t (&d)[4], const void* row,
                            emulation::CallSite site = emulation::CallSite::here()) {
  emulation::load_transposed(d, row, site);
}

// Products of a warpgroup: four warps, from a multiple of four on, whose threads all make the same
// calls. d (+)= a b, with 64 rows, kColumns columns and 16 elements along K; warp w has rows 16 w
// to 16 w + 15. Element 4 i + 2 h + j of d is (row 16 w + g + 8 h, column 8 i + 2 t + j), as of
// mma_bf16(), whose arithmetic it is. `adds`: to d, else to zeros.
//
// A product reads shared memory and `a`, and writes d, at any time between its call and the wait:
// d is read after that, and keep_operand(a) stands after it, for a compiler that does not know.
// begin_products() stands before the first product after a wait, commit_products() makes a group of
// those since the last commit, wait_products<n>(d) waits for all groups but the last n.
inline void begin_products() { emulation::begin_products(); }
template <int kColumns>
void multiply_group(float (&d)[kColumns / 2], const CoreMatrices& a, const CoreMatrices& b,
                    bool adds, emulation::CallSite site = emulation::CallSite::here()) {
  emulation::multiply_group(
      {.d = d, .columns = kColumns, .adds = adds, .a = a, .b = b, .site = site});
}
// `a` as mma_bf16() takes it.
template <int kColumns>
void multiply_group(float (&d)[kColumns / 2], const uint32_t (&a)[4], const CoreMatrices& b,
                    bool adds, emulation::CallSite site = emulation::CallSite::here()) {
  emulation::multiply_group(
      {.d = d, .columns = kColumns, .adds = adds, .a_registers = a, .b = b, .site = site});
}
// The same with core matrices of b whose rows are elements along K, of 8 columns each.
template <int kColumns>
void multiply_group_turned(float (&d)[kColumns / 2], const uint32_t (&a)[4], const CoreMatrices& b,
                           bool adds, emulation::CallSite site = emulation::CallSite::here()) {
  emulation::multiply_group({.d = d,
                             .columns = kColumns,
                             .adds = adds,
                             .a_registers = a,
                             .b = b,
                             .is_turned = true,
                             .site = site});
}
template <int kColumns>
void multiply_group_turned(float (&d)[kColumns / 2], const CoreMatrices& a, const CoreMatrices& b,
                           bool adds, emulation::CallSite site = emulation::CallSite::here()) {
  emulation::multiply_group(
      {.d = d, .columns = kColumns, .adds = adds, .a = a, .b = b, .is_turned = true, .site = site});
}
inline void commit_products() { emulation::commit_products(); }
template <int kPending, int kCount>
void wait_products(float (&/*d*/)[kCount], emulation::CallSite site = emulation::CallSite::here()) {
  emulation::wait_products(kPending, site);
}
inline void keep_operand(uint32_t (&a)[4]) { emulation::keep_operand(a); }
// Registers that each thread of a warpgroup gives to others, or takes: all it has then. For blocks
// whose registers are all taken. Kernels that need it are for GPUs that can.
constexpr bool kCanTakeRegisters = true;
template <uint32_t kRegisters>
void give_registers() {}
template <uint32_t kRegisters>
void take_registers() {}
// What this thread wrote to shared memory is visible to products after a barrier that follows.
inline void publish_to_products() {}

// Begins to copy 16 bytes from global to shared memory, both at multiples of 16. They land at
// wait_copies(), and other threads see them after a barrier behind it. `from` isn't read where
// `is_present` is false: zeros land.
inline void copy_async(void* to, const void* from, bool is_present = true,
                       emulation::CallSite site = emulation::CallSite::here()) {
  emulation::copy_async(to, from, is_present, site);
}
// Makes a group of this thread's copies since the last commit.
inline void commit_copies(emulation::CallSite site = emulation::CallSite::here()) {
  emulation::commit_copies(site);
}
// Waits for this thread's groups but the last `pending`.
template <int pending = 0>
void wait_copies(emulation::CallSite site = emulation::CallSite::here()) {
  emulation::wait_copies(pending, site);
}

// A barrier in shared memory (mbarrier of the PTX ISA). A phase of it passes when it has so many
// arrivals as it was made for, and the copies of the phase have landed; phases have parity 0, 1, 0
// and so on. One thread makes it, and others use it after sync_threads().
struct alignas(8) BarrierState {
  uint64_t bits;
};
inline void init_barrier(BarrierState& barrier, uint32_t arrivals) {
  emulation::init_barrier(&barrier, arrivals);
}
inline void arrive(BarrierState& barrier, emulation::CallSite site = emulation::CallSite::here()) {
  emulation::arrive(&barrier, site);
}
// One arrival of a warp, after what all its lanes have done. All lanes call it.
inline void arrive_as_warp(BarrierState& barrier,
                           emulation::CallSite site = emulation::CallSite::here()) {
  emulation::arrive_as_warp(&barrier, site);
}
// Waits until the phase of that parity has passed, if it is the present one. What its copies
// brought is then visible, and what threads wrote before they arrived.
inline void wait_barrier(BarrierState& barrier, uint32_t parity,
                         emulation::CallSite site = emulation::CallSite::here()) {
  emulation::wait_barrier(&barrier, parity, site);
}
// Copies of a warp to shared memory: begin_bulk() with all bytes of the phase, copy_bulk() for each
// run of them, and end_bulk(). They are kCopyArrivals arrivals. Addresses and sizes are multiples
// of
// 16. All lanes call these.
constexpr uint32_t kCopyArrivals = 1;
constexpr bool kHasBulkCopies = true;  // else older GPUs' copies, lane by lane
inline void begin_bulk(BarrierState& barrier, uint32_t bytes,
                       emulation::CallSite site = emulation::CallSite::here()) {
  emulation::begin_bulk(&barrier, bytes, site);
}
inline void copy_bulk(void* to, const void* from, uint32_t bytes, BarrierState& barrier,
                      emulation::CallSite site = emulation::CallSite::here()) {
  emulation::copy_bulk(to, from, bytes, &barrier, site);
}
inline void end_bulk(BarrierState& /*barrier*/) {}

// Two floats rounded to bfloat16, ties to even, the first in the low half; NaN becomes 0x7FFF.
inline uint32_t pack_bf16(float first, float second) {
  return emulation::bf16_bits(first) | uint32_t{emulation::bf16_bits(second)} << 16;
}

// Byte i is that of the eight, those of `low` first, that digit i of `selector` numbers from 0 on.
inline uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = low | uint64_t{high} << 32;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t from = selector >> 4 * i & 7;
    result |= static_cast<uint32_t>(bytes >> 8 * from & 0xFF) << 8 * i;
  }
  return result;
}
// A float16 whose bits are the low half of `bits`.
inline float float_of_half(uint32_t bits) { return emulation::half_value(bits & 0xFFFFu); }

// a b + c of two pairs of bfloat16, each rounded once. The numbers must be so near each other that
// a double holds a b + c.
inline uint32_t multiply_add_bf16_pairs(uint32_t a, uint32_t b, uint32_t c) {
  return emulation::multiply_add_bf16(a, b, c) |
         emulation::multiply_add_bf16(a >> 16, b >> 16, c >> 16) << 16;
}

// Keeps a compiler from loading what follows early, for which registers wouldn't suffice. All lanes
// call it.
inline void keep_loads_behind() {}

// Memory as another type, at a multiple of T's alignment.
template <class T>
T load_as(const void* from, emulation::CallSite site = emulation::CallSite::here()) {
  emulation::check_alignment(from, alignof(T), site);
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
// The same for memory that nothing writes while the kernel runs. These loads keep their order, so
// that many can be under way. What load_once() reads, of 8 or 16 bytes, is not kept in the first
// cache; load_ahead() reads 2, 4 or 8.
template <class T>
T load_ahead(const void* from, emulation::CallSite site = emulation::CallSite::here()) {
  static_assert(sizeof(T) <= 8);
  return load_as<T>(from, site);
}
template <class T>
T load_once(const void* from, emulation::CallSite site = emulation::CallSite::here()) {
  static_assert(sizeof(T) == 16 || sizeof(T) == 8);
  return load_as<T>(from, site);
}
template <class T>
void store_as(void* to, const T& value, emulation::CallSite site = emulation::CallSite::here()) {
  emulation::check_alignment(to, alignof(T), site);
  std::memcpy(to, &value, sizeof(T));
}

// Adds to device or shared memory at once, and returns what was there.
inline uint32_t atomic_add(uint32_t* to, uint32_t value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
inline uint64_t atomic_add(uint64_t* to, uint64_t value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}
// What this thread wrote before is visible on the device before what it writes after.
inline void fence_device() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

inline float fused_multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
inline double fused_multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
// NaN where either is NaN.
inline float maximum_or_nan(float a, float b) { return a > b || a != a ? a : b; }
inline float square_root(float x) { return std::sqrt(x); }
inline double square_root(double x) { return std::sqrt(x); }

}  // namespace paceline::cuda
