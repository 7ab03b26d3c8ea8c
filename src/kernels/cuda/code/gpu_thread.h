// The functions of code/device_code.h as instructions of a GPU (PTX ISA 8); emulated_thread.h says
// what each does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/code/index3.h"

#define PL_DEVICE __device__ __forceinline__
#define PL_UNROLL _Pragma("unroll")
#define PL_ROLLED _Pragma("unroll 1")

namespace paceline::cuda {

constexpr uint32_t kEveryLane = 0xFFFFFFFFu;

PL_DEVICE uint32_t thread_index() { return threadIdx.x; }
PL_DEVICE Index3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
PL_DEVICE Index3 grid_size() { return {gridDim.x, gridDim.y, gridDim.z}; }

PL_DEVICE void sync_threads() { __syncthreads(); }
PL_DEVICE void publish_writes() {
  __threadfence();
  __syncthreads();
}
PL_DEVICE void sync_warp() { __syncwarp(); }

PL_DEVICE void begin_later_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
PL_DEVICE void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class T>
PL_DEVICE T shuffle(T value, uint32_t lane) {
  return __shfl_sync(kEveryLane, value, static_cast<int>(lane));
}
template <class T>
PL_DEVICE T shuffle_xor(T value, uint32_t mask) {
  return __shfl_xor_sync(kEveryLane, value, static_cast<int>(mask));
}
template <class T>
PL_DEVICE T shuffle_down(T value, uint32_t delta) {
  return __shfl_down_sync(kEveryLane, value, delta);
}
PL_DEVICE uint32_t ballot(bool condition) { return __ballot_sync(kEveryLane, condition); }
PL_DEVICE bool any(bool condition) { return __any_sync(kEveryLane, condition) != 0; }
PL_DEVICE bool all(bool condition) { return __all_sync(kEveryLane, condition) != 0; }

PL_DEVICE void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

PL_DEVICE void load_transposed(uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row))));
}

PL_DEVICE void copy_async(void* to, const void* from, bool is_present = true) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const uint32_t present_bytes = is_present ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared), "l"(from), "r"(present_bytes)
               : "memory");
}
PL_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending = 0>
PL_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

using BarrierState = uint64_t;
PL_DEVICE uint32_t shared_address(const void* place) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}
PL_DEVICE void init_barrier(BarrierState& barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"(shared_address(&barrier)), "r"(arrivals)
               : "memory");
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
PL_DEVICE void arrive(BarrierState& barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }"
               :
               : "r"(shared_address(&barrier))
               : "memory");
}
PL_DEVICE void arrive_as_warp(BarrierState& barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive(barrier);
}
PL_DEVICE bool has_passed(BarrierState& barrier, uint32_t parity) {
  uint32_t passed;
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
      "selp.u32 %0, 1, 0, p; }"
#else
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; "
      "selp.u32 %0, 1, 0, p; }"
#endif
      : "=r"(passed)
      : "r"(shared_address(&barrier)), "r"(parity)
      : "memory");
  return passed != 0;
}
PL_DEVICE void wait_barrier(BarrierState& barrier, uint32_t parity) {
  while (!has_passed(barrier, parity)) {
  }
}
#if __CUDA_ARCH__ >= 900
constexpr uint32_t kCopyArrivals = 1;
constexpr bool kHasBulkCopies = true;
PL_DEVICE void begin_bulk(BarrierState& barrier, uint32_t bytes) {
  if (threadIdx.x % 32 == 0) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }"
                 :
                 : "r"(shared_address(&barrier)), "r"(bytes)
                 : "memory");
  }
}
PL_DEVICE void copy_bulk(void* to, const void* from, uint32_t bytes, BarrierState& barrier) {
  if (threadIdx.x % 32 == 0) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :
        : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(&barrier))
        : "memory");
  }
}
PL_DEVICE void end_bulk(BarrierState& /*barrier*/) {}
#else  // by the copies that older GPUs have
constexpr uint32_t kCopyArrivals = 32;
constexpr bool kHasBulkCopies = false;
PL_DEVICE void begin_bulk(BarrierState& /*barrier*/, uint32_t /*bytes*/) {}
PL_DEVICE void copy_bulk(void* to, const void* from, uint32_t bytes, BarrierState& /*barrier*/) {
  for (uint32_t i = threadIdx.x % 32 * 16; i < bytes; i += 32 * 16) {
    copy_async(static_cast<char*>(to) + i, static_cast<const char*>(from) + i);
  }
}
PL_DEVICE void end_bulk(BarrierState& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
               :
               : "r"(shared_address(&barrier))
               : "memory");
}
#endif

PL_DEVICE uint32_t pack_bf16(float first, float second) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

PL_DEVICE uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  return __byte_perm(low, high, selector);
}
PL_DEVICE float float_of_half(uint32_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<uint16_t>(bits)));
  return value;
}

PL_DEVICE uint32_t multiply_add_bf16_pairs(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

PL_DEVICE void keep_loads_behind() { __syncwarp(); }

template <class T>
PL_DEVICE T load_as(const void* from) {
  return *static_cast<const T*>(from);
}
template <class T>
PL_DEVICE T load_ahead(const void* from) {
  T value;
  if constexpr (sizeof(T) == 2) {
    uint16_t bits;
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(bits) : "l"(from));
    __builtin_memcpy(&value, &bits, sizeof(T));
  } else if constexpr (sizeof(T) == 4) {
    uint32_t bits;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(bits) : "l"(from));
    __builtin_memcpy(&value, &bits, sizeof(T));
  } else {
    static_assert(sizeof(T) == 8);
    uint32_t words[2];
    asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "l"(from));
    __builtin_memcpy(&value, words, sizeof(T));
  }
  return value;
}
template <class T>
PL_DEVICE T load_once(const void* from) {
  static_assert(sizeof(T) == 16 || sizeof(T) == 8);
  uint32_t words[sizeof(T) / 4];
  if constexpr (sizeof(T) == 16) {
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(from));
  } else {
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v2.u32 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "l"(from));
  }
  T value;
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}
template <class T>
PL_DEVICE void store_as(void* to, const T& value) {
  *static_cast<T*>(to) = value;
}

PL_DEVICE uint32_t atomic_add(uint32_t* to, uint32_t value) { return atomicAdd(to, value); }
PL_DEVICE uint64_t atomic_add(uint64_t* to, uint64_t value) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(to), value);
}
PL_DEVICE void fence_device() { __threadfence(); }

PL_DEVICE float fused_multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
PL_DEVICE double fused_multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
PL_DEVICE float maximum_or_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
PL_DEVICE float square_root(float x) { return __fsqrt_rn(x); }
PL_DEVICE double square_root(double x) { return __dsqrt_rn(x); }

}  // namespace paceline::cuda
