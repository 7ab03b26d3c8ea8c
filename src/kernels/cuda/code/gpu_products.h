// Products of a warpgroup as instructions of a GPU (PTX ISA 8, wgmma), and by mma.sync on GPUs
// before Hopper; emulated_thread.h says what each does.
#pragma once

#include "kernels/cuda/code/core_matrices.h"
#include "kernels/cuda/code/gpu_thread.h"

namespace paceline::cuda {

#if __CUDA_ARCH__ >= 900

PL_DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
PL_DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending, int kCount>
PL_DEVICE void wait_products(float (&d)[kCount]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
  PL_UNROLL
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
PL_DEVICE void keep_operand(uint32_t (&a)[4]) {
  PL_UNROLL
  for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

PL_DEVICE uint64_t matrix_descriptor(const CoreMatrices& matrices) {
  return (shared_address(matrices.first) & 0x3FFFFu) >> 4 | uint64_t{matrices.k_bytes >> 4} << 16 |
         uint64_t{matrices.row_bytes >> 4} << 32;
}

template <int kColumns>
struct GroupProduct;

// The registers of d, eight at a time, and their numbers among an instruction's operands.
#define PL_D8(i)                                                                        \
  "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), \
      "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define PL_D16(i) PL_D8(i), PL_D8((i) + 8)
#define PL_D32(i) PL_D16(i), PL_D16((i) + 16)
#define PL_N4 "%0, %1, %2, %3"
#define PL_N8 PL_N4 ", %4, %5, %6, %7"
#define PL_N16 PL_N8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define PL_N32                                                                    \
  PL_N16                                                                          \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, " \
  "%31"
#define PL_N48                                                                    \
  PL_N32                                                                          \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, " \
  "%47"
#define PL_N64                                                                    \
  PL_N48                                                                          \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, " \
  "%63"
#define PL_N96                                                                    \
  PL_N64                                                                          \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, " \
  "%79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

// o0 to o5: the numbers of the operands behind d.
#define PL_GROUP_PRODUCT(columns, registers, outputs, o0, o1, o2, o3, o4, o5)                  \
  template <>                                                                                  \
  struct GroupProduct<columns> {                                                               \
    template <int kTurned>                                                                     \
    PL_DEVICE static void run(float (&d)[columns / 2], uint64_t a, uint64_t b, int adds) {     \
      if constexpr (kTurned) {                                                                 \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #o2                                    \
                     ", 0; wgmma.mma_async.sync.aligned.m64n" #columns                         \
                     "k16.f32.bf16.bf16 {" registers "}, %" #o0 ", %" #o1 ", p, 1, 1, 0, 1; }" \
                     : outputs                                                                 \
                     : "l"(a), "l"(b), "r"(adds));                                             \
      } else {                                                                                 \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #o2                                    \
                     ", 0; wgmma.mma_async.sync.aligned.m64n" #columns                         \
                     "k16.f32.bf16.bf16 {" registers "}, %" #o0 ", %" #o1 ", p, 1, 1, 0, 0; }" \
                     : outputs                                                                 \
                     : "l"(a), "l"(b), "r"(adds));                                             \
      }                                                                                        \
    }                                                                                          \
    template <int kTurned>                                                                     \
    PL_DEVICE static void run(float (&d)[columns / 2], const uint32_t (&a)[4], uint64_t b,     \
                              int adds) {                                                      \
      if constexpr (kTurned) {                                                                 \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #o5                                    \
                     ", 0; wgmma.mma_async.sync.aligned.m64n" #columns                         \
                     "k16.f32.bf16.bf16 {" registers "}, {%" #o0 ", %" #o1 ", %" #o2 ", %" #o3 \
                     "}, %" #o4 ", p, 1, 1, 1; }"                                              \
                     : outputs                                                                 \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));         \
      } else {                                                                                 \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #o5                                    \
                     ", 0; wgmma.mma_async.sync.aligned.m64n" #columns                         \
                     "k16.f32.bf16.bf16 {" registers "}, {%" #o0 ", %" #o1 ", %" #o2 ", %" #o3 \
                     "}, %" #o4 ", p, 1, 1, 0; }"                                              \
                     : outputs                                                                 \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));         \
      }                                                                                        \
    }                                                                                          \
  };
#define PL_D4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define PL_LIST(...) __VA_ARGS__
PL_GROUP_PRODUCT(8, PL_N4, PL_LIST(PL_D4(0)), 4, 5, 6, 7, 8, 9)
PL_GROUP_PRODUCT(16, PL_N8, PL_LIST(PL_D8(0)), 8, 9, 10, 11, 12, 13)
PL_GROUP_PRODUCT(32, PL_N16, PL_LIST(PL_D16(0)), 16, 17, 18, 19, 20, 21)
PL_GROUP_PRODUCT(64, PL_N32, PL_LIST(PL_D32(0)), 32, 33, 34, 35, 36, 37)
PL_GROUP_PRODUCT(96, PL_N48, PL_LIST(PL_D32(0), PL_D16(32)), 48, 49, 50, 51, 52, 53)
PL_GROUP_PRODUCT(128, PL_N64, PL_LIST(PL_D32(0), PL_D32(32)), 64, 65, 66, 67, 68, 69)
PL_GROUP_PRODUCT(192, PL_N96, PL_LIST(PL_D32(0), PL_D32(32), PL_D32(64)), 96, 97, 98, 99, 100, 101)
#undef PL_LIST
#undef PL_D4
#undef PL_GROUP_PRODUCT
#undef PL_N96
#undef PL_N64
#undef PL_N48
#undef PL_N32
#undef PL_N16
#undef PL_N8
#undef PL_N4
#undef PL_D32
#undef PL_D16
#undef PL_D8

template <int kColumns>
PL_DEVICE void multiply_group(float (&d)[kColumns / 2], const CoreMatrices& a,
                              const CoreMatrices& b, bool adds) {
  GroupProduct<kColumns>::template run<0>(d, matrix_descriptor(a), matrix_descriptor(b),
                                          adds ? 1 : 0);
}
template <int kColumns>
PL_DEVICE void multiply_group(float (&d)[kColumns / 2], const uint32_t (&a)[4],
                              const CoreMatrices& b, bool adds) {
  GroupProduct<kColumns>::template run<0>(d, a, matrix_descriptor(b), adds ? 1 : 0);
}
template <int kColumns>
PL_DEVICE void multiply_group_turned(float (&d)[kColumns / 2], const uint32_t (&a)[4],
                                     const CoreMatrices& b, bool adds) {
  GroupProduct<kColumns>::template run<1>(d, a, matrix_descriptor(b), adds ? 1 : 0);
}
template <int kColumns>
PL_DEVICE void multiply_group_turned(float (&d)[kColumns / 2], const CoreMatrices& a,
                                     const CoreMatrices& b, bool adds) {
  GroupProduct<kColumns>::template run<1>(d, matrix_descriptor(a), matrix_descriptor(b),
                                          adds ? 1 : 0);
}

// Registers of each thread of a warpgroup, for kernels that have one block on a multiprocessor.
constexpr bool kCanTakeRegisters = true;
template <uint32_t kRegisters>
PL_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <uint32_t kRegisters>
PL_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
PL_DEVICE void publish_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#else  // by the instructions of a warp

PL_DEVICE void begin_products() {}
PL_DEVICE void commit_products() {}
template <int kPending, int kCount>
PL_DEVICE void wait_products(float (&/*d*/)[kCount]) {}
PL_DEVICE void keep_operand(uint32_t (&/*a*/)[4]) {}
constexpr bool kCanTakeRegisters = false;
template <uint32_t kRegisters>
PL_DEVICE void give_registers() {}
template <uint32_t kRegisters>
PL_DEVICE void take_registers() {}
PL_DEVICE void publish_to_products() {}

PL_DEVICE void load_matrices(uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(shared_address(row)));
}
PL_DEVICE const void* core_row(const CoreMatrices& from, uint32_t k, uint32_t row_group) {
  return static_cast<const char*>(from.first) + k * from.k_bytes + row_group * from.row_bytes +
         threadIdx.x % 8 * 16;
}

template <int kColumns, bool kTurned>
PL_DEVICE void multiply_warp(float (&d)[kColumns / 2], const uint32_t (&a)[4],
                             const CoreMatrices& b, bool adds) {
  const uint32_t matrix = threadIdx.x % 32 / 8;
  PL_UNROLL
  for (int i = 0; i < kColumns / 8; i += 2) {
    // Both halves of K of columns 8 i to 8 i + 7, and of the next eight.
    uint32_t pairs[4];
    const uint32_t group = static_cast<uint32_t>(i) + matrix / 2;
    const void* const row =
        core_row(b, matrix % 2, group < kColumns / 8 ? group : static_cast<uint32_t>(i));
    if constexpr (kTurned) {
      load_transposed(pairs, row);
    } else {
      load_matrices(pairs, row);
    }
    PL_UNROLL
    for (int j = 0; j < 2 && i + j < kColumns / 8; ++j) {
      float(&sums)[4] = *reinterpret_cast<float(*)[4]>(&d[4 * (i + j)]);
      if (!adds) sums[0] = sums[1] = sums[2] = sums[3] = 0.0f;
      const uint32_t own[2] = {pairs[2 * j], pairs[2 * j + 1]};
      mma_bf16(sums, a, own);
    }
  }
}
template <int kColumns>
PL_DEVICE void multiply_group(float (&d)[kColumns / 2], const uint32_t (&a)[4],
                              const CoreMatrices& b, bool adds) {
  multiply_warp<kColumns, false>(d, a, b, adds);
}
template <int kColumns>
PL_DEVICE void multiply_group_turned(float (&d)[kColumns / 2], const uint32_t (&a)[4],
                                     const CoreMatrices& b, bool adds) {
  multiply_warp<kColumns, true>(d, a, b, adds);
}
PL_DEVICE void load_operand(uint32_t (&own)[4], const CoreMatrices& a) {
  const uint32_t matrix = threadIdx.x % 32 / 8, warp = threadIdx.x / 32 % 4;
  load_matrices(own, core_row(a, matrix / 2, 2 * warp + matrix % 2));
}
template <int kColumns>
PL_DEVICE void multiply_group(float (&d)[kColumns / 2], const CoreMatrices& a,
                              const CoreMatrices& b, bool adds) {
  uint32_t own[4];
  load_operand(own, a);
  multiply_warp<kColumns, false>(d, own, b, adds);
}
template <int kColumns>
PL_DEVICE void multiply_group_turned(float (&d)[kColumns / 2], const CoreMatrices& a,
                                     const CoreMatrices& b, bool adds) {
  uint32_t own[4];
  load_operand(own, a);
  multiply_warp<kColumns, true>(d, own, b, adds);
}
#endif

}  // namespace paceline::cuda
