// CudaRowSampler draws on a CudaDevice: one copy to it and one from it for a batch of draws.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cuda/code/draw_row.h"
#include "kernels/cuda/code/rows.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/scratch_buffer.h"
#include "kernels/row_sampler.h"

namespace paceline::cuda {

// What the kernels of a draw read and write, in the device's memory: an element or a row for each.
struct DrawLaunch {
  int64_t num_rows = 0;
  int64_t width = 0;
  const DrawRow* rows = nullptr;
  ConstRows logits;
  Rows adjusted;                 // for rows that change their logits; without one, none does
  float* log_sum_exp = nullptr;  // for log-probabilities; without one, none is asked for
  DrawnToken* drawn = nullptr;
};
// Without lists.
DrawRow settings_of(const RowDraw& draw);
void launch_draws(CudaDevice& device, const DrawLaunch& launch);

class CudaRowSampler final : public RowSampler {
 public:
  CudaRowSampler(CudaDevice& device, ScratchMemory& memory)
      : device_(device), operands_(memory), results_(memory), adjusted_(memory), sums_(memory) {}

  void begin(std::span<const RowDraw> draws, int64_t vocab_size) override;
  void draw(int64_t first, const Tensor& logits) override;
  void finish(std::span<Sample> samples) override;

 private:
  // What the CPU remembers of a row.
  struct Pending {
    bool is_adjusted = false;
    bool wants_logprob = false;
    size_t first_scored = 0;
    size_t num_scored = 0;  // at most
  };

  template <class T>
  const T* append(std::span<const T> span);
  void append_row(const RowDraw& draw, Pending& pending);

  CudaDevice& device_;
  ScratchBuffer operands_;
  ScratchBuffer results_;  // a DrawnToken for each row, then what they score
  ScratchBuffer adjusted_;
  ScratchBuffer sums_;
  std::vector<DrawRow> rows_;
  std::vector<std::byte> bytes_;  // of operands_: the rows, then their spans
  std::vector<Pending> pending_;
  std::vector<std::byte> result_bytes_;
  DrawnToken* drawn_ = nullptr;
  int64_t vocab_size_ = 0;
};

}  // namespace paceline::cuda
