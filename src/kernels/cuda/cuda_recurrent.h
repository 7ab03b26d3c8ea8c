// CudaRecurrent runs the operations of recurrent layers by the kernels of code/.
#pragma once

#include <vector>

#include "kernels/cuda/call_staging.h"
#include "kernels/cuda/code/short_convolution.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/normed_rows.h"
#include "kernels/recurrent.h"

namespace paceline::cuda {

class CudaRecurrent final : public RecurrentOps {
 public:
  // `normed` are the backend's, which a kernel may overwrite.
  CudaRecurrent(CudaDevice& device, ScratchMemory& memory, NormedRows& normed)
      : device_(device), normed_(normed), staging_(device, memory) {}

 private:
  void do_short_convolution(const ConvolutionShape& shape, const Tensor& x,
                            const ConvolutionWeights& weights, const StateSlices& slices,
                            const StateMemory& memory, const Tensor& out) override;
  void do_decay_gates(const Tensor& x, const Tensor& bias, const Tensor& rates,
                      const GateRange& range, const Tensor& out) override;
  void do_multiply(const Tensor& x, const Tensor& y, const Tensor& out) override;
  // Throws Error unsupported if keys have more than 256 elements.
  void do_delta_rule(const DeltaShape& shape, const DeltaInputs& inputs, const StateSlices& slices,
                     const StateMemory& memory, const Tensor& out) override;
  // Throws Error unsupported if states have more than 64 elements a channel.
  void do_selective_scan(const ScanShape& shape, const ScanInputs& inputs,
                         const StateSlices& slices, const StateMemory& memory,
                         const Tensor& out) override;
  void do_copy_states(const Tensor& blocks, std::span<const BlockMove> moves) override;

  // Slices on the device, until the next call.
  struct StagedStates {
    StateBlocks states;
    int64_t num_slices;
    const ConvolutionPiece* pieces;  // null: each slice is one
    int64_t num_pieces;
    bool has_longer;  // slices than of one row, which keep what they must themselves
  };
  StagedStates stage(const StateSlices& states, const StateMemory& memory);
  template <class Kernel>
  void run(Grid grid, const typename Kernel::Params& params) {
    normed_ = {};
    launch<Kernel>(device_, grid, params);
  }

  CudaDevice& device_;
  NormedRows& normed_;
  CallStaging staging_;
  std::vector<StateRows> slices_;  // of the current call
  std::vector<SavePoint> saves_;
  std::vector<ConvolutionPiece> pieces_;
};

}  // namespace paceline::cuda
