// CpuGradients splits every operation of a backward pass over the threads by output and calls the
// kernels of one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/cpu/growing_buffer.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/gradients.h"

namespace paceline {

class CpuGradients final : public GradientOps {
 public:
  CpuGradients(const KernelTable& kernels, ThreadPool& threads, Memory& memory)
      : kernels_(kernels),
        threads_(threads),
        input_rows_(memory),
        panels_(memory),
        thread_scratch_(memory) {}

 private:
  void do_matmul_input_gradient(const Tensor& dy, const PackedMatrix& w, const Tensor& dx) override;
  void do_matmul_weight_gradient(const Tensor& dy, const Tensor& x, OperandRounding rounding,
                                 const Tensor& dw) override;

  // Makes the columns of rows the panels of a product whose K are the rows.
  void pack_panels(const Tensor& rows, DType dtype, int64_t panel_bytes, std::byte* panels);
  // Makes the columns of rows prepared inputs of that product.
  void prepare_columns(const Tensor& rows, DType dtype, int64_t input_stride, std::byte* inputs);

  const KernelTable& kernels_;
  ThreadPool& threads_;
  GrowingBuffer input_rows_;
  GrowingBuffer panels_;
  GrowingBuffer thread_scratch_;
};

}  // namespace paceline
