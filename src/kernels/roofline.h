// Roofline is what this machine can do at best, measured now: the yardstick of every benchmark.
#pragma once

#include "kernels/backend.h"

namespace paceline {

struct Roofline {
  double read_bytes_per_s = 0.0;  // all threads summing a buffer larger than the caches
  double bf16_flops_per_s = 0.0;  // all threads, the instruction that bfloat16 products use
  double f32_flops_per_s = 0.0;   // the same for float32
  double int8_ops_per_s = 0.0;    // and for 8-bit integers
};

// Takes about `seconds` for each of the four and more than 1 GiB of memory while it runs. Throws
// Error exhausted when there is none.
Roofline measure_roofline(Isa isa, ThreadPool& threads, Memory& memory, double seconds);

// What vdpbf16ps, the processor's own instruction for bfloat16 products, does at best in about
// `seconds`; 0 where there is none. On processors that start it every other cycle choose_isa()
// takes float32 multiply-adds, which are faster.
double measure_vdpbf16ps_flops_per_s(ThreadPool& threads, double seconds);

}  // namespace paceline
