#include "train/head_loss.h"

#include <algorithm>
#include <array>
#include <utility>

#include "train/backend_operation.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;
using autodiff::Wanted;

constexpr int64_t kChunkRows = kGradientRows;  // whose logits exist together

class HeadLoss final : public BackendOperation {
 public:
  HeadLoss(Backend& backend, const Decoder& decoder, const DecoderTraining& training,
           const TrainBatch& batch, std::vector<float>& losses)
      : BackendOperation(backend), decoder_(decoder), training_(training), losses_(losses) {
    for (size_t row = 0; row < batch.weights.size(); ++row) {
      if (is_trained() && row % kChunkRows == 0) end_chunk();
      if (batch.weights[row] == 0.0f) continue;
      rows_.push_back(static_cast<int32_t>(row));
      targets_.push_back(batch.targets[row]);
      weights_.push_back(batch.weights[row]);
      if (std::ssize(rows_) - chunk_ends_.back() == kChunkRows) end_chunk();
    }
    end_chunk();
  }

  std::string_view name() const override { return "head_loss"; }

  Array forward(const Arrays& inputs) const override { return forward_and_save(inputs, {}).output; }

  autodiff::Forward forward_and_save(const Arrays& inputs, const Wanted& wanted) const override {
    const bool wants_gradient = !wanted.empty() && wanted[0];
    const Tensor& residual = inputs[0].tensor();
    const auto count = std::ssize(rows_);
    const int64_t width = residual.size(1);
    Array states = new_array(inputs[0], {count, width});
    const Tensor x = states.writable();
    backend().gather_rows(residual, rows_, x);
    Array d_residual;
    if (wants_gradient) {  // zeros where there is no loss
      d_residual = Array(inputs[0].context(), DType::f32, residual.shape());
    }
    double total = 0.0;
    for (size_t i = 1; i < chunk_ends_.size(); ++i) {
      const int64_t begin = chunk_ends_[i - 1];
      total += add_chunk(inputs[0], x.slice(0, begin, chunk_ends_[i]), begin, d_residual);
    }
    Array loss = new_array(inputs[0], {});
    backend().write(std::array{static_cast<float>(total)}, loss.writable());
    return {.output = loss, .saved = wants_gradient ? Arrays{d_residual} : Arrays{}};
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    PL_CHECK(application.saved.size() == 1, "the gradient is computed with the loss");
    std::vector<float> staging;
    PL_CHECK(backend().read(untraced(cotangent), staging)[0] == 1.0f,
             "the loss is what is differentiated");
    return {application.saved[0]};
  }

  bool vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  bool is_trained() const { return training_.head || training_.final_norm.weight; }

  // Chunks of trained weights are those of a batch's rows whichever have a loss: their gradients
  // are sums over chunks, which then are the same for any micro-batches.
  void end_chunk() {
    if (std::ssize(rows_) > chunk_ends_.back()) chunk_ends_.push_back(std::ssize(rows_));
  }

  // The weighted losses of a chunk, which begins at row `begin` of those with a loss. Writes the
  // gradients of its rows.
  double add_chunk(const Array& like, const Tensor& x, int64_t begin, Array& d_residual) const {
    const int64_t rows = x.size(0);
    const float cap = decoder_.config().final_soft_cap;
    const float scale = decoder_.config().logits_scale;
    const Norm& norm = decoder_.final_norm();
    Array normed = new_array(like, x.shape());
    norm.forward(backend(), x, normed.writable());
    Array logits = new_array(like, {rows, decoder_.head().n});
    const Tensor scores = logits.writable();
    Array uncapped;  // its gradient reads what the cap is applied to
    if (cap > 0) uncapped = new_array(like, scores.shape());
    const Tensor products = cap > 0 ? uncapped.writable() : scores;
    backend().matmul(normed.tensor(), decoder_.head(), decoder_.head_bias(), products);
    if (scale != 1.0f) backend().scale(products, std::array{scale}, products);
    if (cap > 0) backend().soft_cap(products, cap, scores);
    std::vector<float> losses(static_cast<size_t>(rows));
    const auto of_chunk = [&](const auto& all) {
      return std::span(all).subspan(static_cast<size_t>(begin), static_cast<size_t>(rows));
    };
    const auto weights = of_chunk(weights_);
    gradients().cross_entropy_gradient(of_chunk(targets_), weights, scores, losses);
    double total = 0.0;
    for (size_t i = 0; i < losses.size(); ++i) {
      losses_.push_back(losses[i]);
      total += double{losses[i]} * double{weights[i]};
    }
    if (!d_residual.is_defined()) return total;
    if (cap > 0) gradients().soft_cap_gradient(uncapped.tensor(), cap, scores, scores);
    if (scale != 1.0f) backend().scale(scores, std::array{scale}, scores);
    Array d_normed = new_array(like, x.shape());
    const Tensor dx = d_normed.writable();
    if (training_.head) {
      gradients().matmul_gradients(
          scores, decoder_.head(),
          {.x = normed.tensor(), .rounding = rounding_of(decoder_.head()), .dw = *training_.head},
          dx);
    } else {
      gradients().matmul_input_gradient(scores, decoder_.head(), dx);
    }
    norm.gradient(gradients(), x, dx, dx, training_.final_norm);
    const std::vector<float> ones(of_chunk(rows_).size(), 1.0f);
    backend().add_scaled_rows(dx, of_chunk(rows_), ones, d_residual.writable());
    return total;
  }

  const Decoder& decoder_;
  const DecoderTraining& training_;
  std::vector<float>& losses_;
  std::vector<int32_t> rows_;  // with a loss
  std::vector<int32_t> targets_;
  std::vector<float> weights_;
  std::vector<int64_t> chunk_ends_ = {0};  // in rows_
};

}  // namespace

Array apply_head_loss(Backend& backend, const Decoder& decoder, const DecoderTraining& training,
                      const TrainBatch& batch, std::vector<float>& losses, const Array& residual) {
  return autodiff::apply_new<HeadLoss>({residual}, backend, decoder, training, batch, losses);
}

}  // namespace paceline
