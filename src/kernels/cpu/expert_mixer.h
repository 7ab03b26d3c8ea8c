// ExpertMixer computes weighted sums of experts: one product for the rows of each expert, in two
// parallel regions whatever the number of experts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/expert_rows.h"
#include "kernels/cpu/gated_product.h"
#include "kernels/cpu/growing_buffer.h"
#include "kernels/cpu/stream_tuner.h"

namespace paceline {

class ExpertMixer {
 public:
  // All must outlive it.
  ExpertMixer(const KernelTable& kernels, ThreadPool& threads, StreamTuner& tuner, Memory& memory);

  // Backend::mix_experts.
  void mix(std::span<const GatedMlpWeights> experts, const Routing& routing, const Tensor& x,
           const Tensor& out);

 private:
  // Some rows of one expert: the slots [first_slot, first_slot + num_rows).
  struct Block {
    GatedProduct product;
    const GatedMlpWeights* weights = nullptr;
    int64_t first_slot = 0;
    int64_t num_rows = 0;
  };
  // A block times some of its inner columns.
  struct Piece {
    const Block* block = nullptr;
    int64_t first_unit = 0;
    int64_t last_unit = 0;
    InnerColumns columns;
  };
  // Prepared rows: those of a block begin at its first slot times the widest stride, or all blocks
  // have the same row.
  struct Rows {
    std::byte* first = nullptr;
    int64_t stride = 0;
    bool is_shared = false;

    std::byte* of(const Block& block) const {
      return first + (is_shared ? 0 : block.first_slot * stride);
    }
  };

  void plan_blocks(std::span<const GatedMlpWeights> experts, const Routing& routing);
  void plan_pieces();
  // Whether one row goes to all experts, in the form that each of their first products takes.
  bool shares_inputs() const;
  void prepare_inputs(const Tensor& x);
  void compute_inner_rows();
  // Of blocks whose inner rows are plain numbers.
  void prepare_inner_rows();
  const std::byte* down_rows_of(const Block& block) const {
    return (block.product.has_plain_inner_rows() ? down_rows_ : inner_rows_).of(block);
  }
  void add_outputs(const Tensor& out);
  // For StreamTuner::Product: the number of experts of several rows differs from call to call, so
  // only products of one row are timed; others have their choices.
  int64_t timed_panels(const CpuProduct& product) const {
    return num_rows_ == 1 ? product.stream_panels(1) : 0;
  }
  WeightStreams streams_of(const StreamTuner::Product& timed, const PackedMatrix& matrix) const {
    return num_rows_ == 1 ? timed.streams() : tuner_.streams_like(matrix);
  }
  // The panels that a thread reads after piece `index`, unless another thread takes the next piece.
  const void* panels_after(int64_t index) const;

  const KernelTable& kernels_;
  ThreadPool& threads_;
  StreamTuner& tuner_;
  GrowingBuffer gate_buffer_, up_buffer_, inner_buffer_, down_buffer_, thread_scratch_;

  // Of the current call.
  int64_t num_rows_ = 0;
  ExpertRows sorted_;
  std::vector<Block> blocks_;
  std::vector<Piece> pieces_;
  Rows gate_rows_, up_rows_;  // `up_rows_` of blocks whose gate and up need different forms
  Rows inner_rows_;
  Rows down_rows_;  // of prepare_inner_rows()
};

}  // namespace paceline
