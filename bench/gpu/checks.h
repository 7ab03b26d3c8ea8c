// The parts of paceline_gpu_check. Each takes the GPU and reports what it found.
#pragma once

#include "bench/gpu/check_options.h"
#include "bench/gpu/check_report.h"
#include "kernels/cuda/device.h"

namespace paceline {

// Its name, compute capability, memory and driver, and what this program has kernels for.
void report_device(cuda::CudaDevice& device, CheckReport& report);
// Copies from, to and within the GPU's memory; single matrix instructions against the emulation's,
// bit for bit.
void check_arithmetic(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report);
// The small cases of the op table: within their tolerances of the reference, and the emulation's
// bits.
void check_ops(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report);
// A row's bits are the same alone, in any batch and in any chunking.
void check_rows(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report);
// The same of layers with states: as one prompt, in cuts, from a saved state and one by one.
void check_states(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report);
// Random rows are drawn from as the CPU's sampler does on the same logits, bit for bit.
void check_draws(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report);
// The rate of copies and of matrix instructions, by kernels that do nothing else.
struct Ceilings {
  double bytes_per_s = 0;  // read and written
  double flops_per_s = 0;  // of bfloat16 products
};
Ceilings measure_ceilings(cuda::CudaDevice& device, const CheckOptions& options,
                          CheckReport& report);
// Operations at the shapes of models, beside what the ceilings allow.
void measure_kernels(cuda::CudaDevice& device, const Ceilings& ceilings,
                     const CheckOptions& options, CheckReport& report);
// Products of many rows by every choice of tiles.
void measure_tiles(cuda::CudaDevice& device, const Ceilings& ceilings, const CheckOptions& options,
                   CheckReport& report);
// Products of 2,048 rows, and attention of a prompt of 8,192 tokens, at the shapes of a 1B and an
// 8B model.
void measure_prompt_products(cuda::CudaDevice& device, const Ceilings& ceilings,
                             const CheckOptions& options, CheckReport& report);
void measure_prompt_attention(cuda::CudaDevice& device, const Ceilings& ceilings,
                              const CheckOptions& options, CheckReport& report);

}  // namespace paceline
