// TrainedExperts computes single experts of a mixture with what is trained of them, and their
// gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "layers/expert_steps.h"
#include "layers/gated_mlp.h"
#include "train/mixture_training.h"

namespace paceline {

// Appends the segments of an expert's trained pairs for rows first_row.. of its product.
void list_trained_segments(const LinearTraining& training, const RowsOfExpert& rows,
                           std::vector<LoraSegment>& segments);

class TrainedExperts {
 public:
  // All must outlive it.
  TrainedExperts(Backend& backend, const Dropout& dropout) : backend_(backend), dropout_(dropout) {}

  // The rows of one expert.
  struct Rows {
    std::span<const int32_t> batch_rows;  // ascending
    std::span<const float> weights;       // of its output in each row's sum
  };

  // y[row] += weight * the expert's output.    x, y [batch rows, hidden]
  void add_outputs(const GatedMlp& expert, const ExpertTraining& training, const Rows& rows,
                   const Tensor& x, const Tensor& y) const;

  // dx[row] += the gradient of the expert's input; dweights[i] = the product of its output in row i
  // with dy: the expert is computed again. What `training` trains (null: nothing) gets the
  // gradients of the rows, summed in segments of kGradientRows rows of the batch: micro-batches of
  // whole segments change no bit.
  //                                     x, dy, dx [batch rows, hidden], dweights [rows]
  void add_gradients(const GatedMlp& expert, const ExpertTraining* training, const Rows& rows,
                     const Tensor& x, const Tensor& dy, const Tensor& dx,
                     std::span<double> dweights) const;

 private:
  // What an expert makes of its rows.
  struct Pass {
    OwnedTensor x;        // [rows, hidden]
    OwnedTensor gate_up;  // [rows, up_width]
    OwnedTensor inner;    // [rows, width]
    OwnedTensor out;      // [rows, hidden]
  };
  Pass run(const GatedMlp& expert, const ExpertTraining* training,
           std::span<const int32_t> batch_rows, const Tensor& x) const;
  // What A sees of x.
  Tensor dropped(const LoraProjection& lora, std::span<const int32_t> batch_rows, const Tensor& x,
                 OwnedTensor& kept) const;
  OwnedTensor new_tensor(int64_t rows, int64_t width) const;
  OwnedTensor gathered(const Tensor& x, std::span<const int32_t> rows) const;
  void forward(const Linear& linear, const LinearTraining* training,
               std::span<const int32_t> batch_rows, const Tensor& x, const Tensor& out) const;
  // dx = the gradient of the product's input; adds those of what is trained.
  void backward(const Linear& linear, const LinearTraining* training,
                std::span<const int32_t> batch_rows, const Tensor& x, const Tensor& dy,
                const Tensor& dx) const;
  void add_pair(const LoraProjection& lora, std::span<const int32_t> batch_rows, const Tensor& x,
                const Tensor& all_dy, const Tensor& dx) const;
  // gradient += dy^T * x
  void add_weight_gradient(std::span<const int32_t> batch_rows, const Tensor& dy, const Tensor& x,
                           OperandRounding rounding, const Tensor& gradient) const;
  void multiply_rows(const Tensor& a, const Tensor& b, std::span<double> out) const;

  Backend& backend_;
  const Dropout& dropout_;
};

}  // namespace paceline
