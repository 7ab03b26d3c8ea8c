// CpuRecurrentGradients splits every operation of a backward pass of recurrent layers over the
// threads by output and calls the kernels of one instruction set.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/growing_buffer.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/recurrent_gradients.h"

namespace paceline {

class CpuRecurrentGradients final : public RecurrentGradientOps {
 public:
  CpuRecurrentGradients(const KernelTable& kernels, ThreadPool& threads, Memory& memory)
      : kernels_(kernels),
        threads_(threads),
        key_parts_(memory),
        channel_parts_(memory),
        rate_parts_(memory),
        thread_scratch_(memory) {}

 private:
  void do_short_convolution_gradient(const ConvolutionShape& shape, const Tensor& taps,
                                     const Tensor& dout, std::span<const SequenceRows> sequences,
                                     const Tensor& dx) override;
  void do_decay_gates_gradient(const DecayGatesInputs& in, const Tensor& dx) override;
  void do_delta_rule_gradient(const DeltaShape& shape, const DeltaGradientInputs& in,
                              std::span<const SequenceRows> sequences,
                              const DeltaGradients& out) override;
  void do_selective_scan_gradient(const ScanShape& shape, const ScanGradientInputs& in,
                                  std::span<const SequenceRows> sequences,
                                  const ScanGradients& out) override;

  const KernelTable& kernels_;
  ThreadPool& threads_;
  GrowingBuffer key_parts_;
  GrowingBuffer channel_parts_, rate_parts_;  // of scans
  GrowingBuffer thread_scratch_;
};

}  // namespace paceline
