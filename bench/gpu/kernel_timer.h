// KernelTimer times operations of a backend and reports them beside what the ceilings allow.
#pragma once

#include <functional>
#include <string_view>

#include "base/thread_pool.h"
#include "bench/gpu/checks.h"
#include "kernels/backend.h"

namespace paceline {

// What an operation moves and computes at least.
struct OperationCost {
  double bytes = 0;
  double flops = 0;  // of products
};

class KernelTimer {
 public:
  KernelTimer(cuda::CudaDevice& gpu, const Ceilings& ceilings, const CheckOptions& options,
              CheckReport& report);

  cuda::CudaDevice& device() { return device_; }
  Backend& backend() { return *backend_; }
  Memory& memory() { return backend_->memory(); }
  bool is_small() const { return is_small_; }
  bool is_over() const { return deadline_.is_over(); }

  // run(i) is the i-th call; calls take turns with buffers, which together exceed the caches.
  void time(std::string_view name, const OperationCost& cost,
            const std::function<void(int64_t)>& run);
  // The number of buffers of `bytes` that together exceed the caches.
  int64_t num_rotated(double bytes) const;

 private:
  cuda::CudaDevice& device_;
  Ceilings ceilings_;
  bool is_small_;
  Deadline deadline_;
  CheckReport& report_;
  ThreadPool threads_{0};
  std::unique_ptr<Backend> backend_;
};

// Every choice of tiles for products of many rows (tile_choice.h).
void time_tiles(KernelTimer& timer);
// Products with weights of bfloat16, of 4 and of 8 bits.
void time_products(KernelTimer& timer);
// Attention of decoded rows and of prompts.
void time_attention(KernelTimer& timer);
// Those of prompts alone, at the shapes of a 1B and an 8B model.
void time_prompt_products(KernelTimer& timer);
void time_prompt_attention(KernelTimer& timer, std::string_view how);
// Norms and activations.
void time_row_operations(KernelTimer& timer);

}  // namespace paceline
