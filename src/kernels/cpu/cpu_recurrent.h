// CpuRecurrent splits every operation of recurrent layers over the threads by output and calls the
// kernels of one instruction set.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/growing_buffer.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/recurrent.h"

namespace paceline {

class CpuRecurrent final : public RecurrentOps {
 public:
  CpuRecurrent(const KernelTable& kernels, ThreadPool& threads, Memory& memory)
      : kernels_(kernels), threads_(threads), thread_scratch_(memory) {}

 private:
  void do_short_convolution(const ConvolutionShape& shape, const Tensor& x,
                            const ConvolutionWeights& weights, const StateSlices& slices,
                            const StateMemory& memory, const Tensor& out) override;
  void do_decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                      const GateRange& range, const Tensor& out) override;
  void do_multiply(const Tensor& x, const Tensor& y, const Tensor& out) override;
  void do_delta_rule(const DeltaShape& shape, const DeltaInputs& inputs, const StateSlices& slices,
                     const StateMemory& memory, const Tensor& out) override;
  void do_selective_scan(const ScanShape& shape, const ScanInputs& inputs,
                         const StateSlices& slices, const StateMemory& memory,
                         const Tensor& out) override;
  void do_copy_states(const Tensor& blocks, std::span<const BlockMove> moves) override;

  const KernelTable& kernels_;
  ThreadPool& threads_;
  GrowingBuffer thread_scratch_;
  std::vector<DeltaTask> tasks_;  // of the current call of delta_rule
  std::vector<StateCopy> saves_;
  std::vector<ScanTask> scans_;  // likewise of selective_scan
};

}  // namespace paceline
