#include "train/head_loss.h"

#include <algorithm>
#include <utility>

#include "train/backend_operation.h"

namespace paceline {
namespace {

using autodiff::Application;
using autodiff::Array;
using autodiff::Arrays;
using autodiff::Wanted;

constexpr int64_t kChunkRows = 256;  // whose logits exist together

class HeadLoss final : public BackendOperation {
 public:
  HeadLoss(Backend& backend, const Decoder& decoder, const TrainBatch& batch,
           std::vector<float>& losses)
      : BackendOperation(backend), decoder_(decoder), batch_(batch), losses_(losses) {
    for (size_t row = 0; row < batch.weights.size(); ++row) {
      if (batch.weights[row] == 0.0f) continue;
      rows_.push_back(static_cast<int32_t>(row));
      targets_.push_back(batch.targets[row]);
      weights_.push_back(batch.weights[row]);
    }
  }

  std::string_view name() const override { return "head_loss"; }

  Array forward(const Arrays& inputs) const override { return forward_and_save(inputs, {}).output; }

  autodiff::Forward forward_and_save(const Arrays& inputs, const Wanted& wanted) const override {
    const bool wants_gradient = !wanted.empty() && wanted[0];
    const Tensor& residual = inputs[0].tensor();
    const int64_t count = static_cast<int64_t>(rows_.size());
    const int64_t width = residual.size(1);
    Array states = new_array(inputs[0], {count, width});
    const Tensor x = states.writable();
    backend().gather_rows(residual, rows_, x);
    Array d_residual;
    if (wants_gradient) d_residual = new_array(inputs[0], residual.shape());
    double total = 0.0;
    for (int64_t begin = 0; begin < count; begin += kChunkRows) {
      const int64_t end = std::min(count, begin + kChunkRows);
      total += add_chunk(inputs[0], x.slice(0, begin, end), begin, d_residual);
    }
    Array loss = new_array(inputs[0], {});
    loss.writable().elements<float>()[0] = static_cast<float>(total);
    return {.output = loss, .saved = wants_gradient ? Arrays{d_residual} : Arrays{}};
  }

  Arrays vjp(const Array& cotangent, const Application& application) const override {
    PL_CHECK(application.saved.size() == 1, "the gradient is computed with the loss");
    PL_CHECK(autodiff::to_scalar(cotangent) == 1.0f, "the loss is what is differentiated");
    return {application.saved[0]};
  }

  bool vjp_reads_input(size_t /*index*/, const Wanted& /*wanted*/) const override { return false; }
  bool vjp_reads_output() const override { return false; }

 private:
  // The weighted losses of a chunk, which begins at row `begin` of those with a loss. Writes the
  // gradients of its rows.
  double add_chunk(const Array& like, const Tensor& x, int64_t begin, Array& d_residual) const {
    const int64_t rows = x.size(0);
    const float cap = decoder_.config().final_soft_cap;
    const RmsNorm& norm = decoder_.final_norm();
    Array normed = new_array(like, x.shape());
    norm.forward(backend(), x, normed.writable());
    Array logits = new_array(like, {rows, decoder_.head().n});
    Tensor scores = logits.writable();
    backend().matmul(normed.tensor(), decoder_.head(), nullptr, scores);
    Array uncapped;  // its gradient reads what the cap was applied to
    if (cap > 0) {
      uncapped = new_array(like, scores.shape());
      const Tensor before = uncapped.writable();
      copy_elements(scores, before);
      backend().soft_cap(scores, cap, scores);
    }
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
    Array d_normed = new_array(like, x.shape());
    const Tensor dx = d_normed.writable();
    gradients().matmul_input_gradient(scores, decoder_.head(), dx);
    gradients().rms_norm_gradient({.x = x, .weight = norm.weight(), .dy = dx}, norm.eps(), dx,
                                  nullptr);
    const Tensor out = d_residual.writable();
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = rows_[static_cast<size_t>(begin + i)];
      std::copy_n(dx.row<float>(i), dx.size(1), out.row<float>(row));
    }
    return total;
  }

  const Decoder& decoder_;
  const TrainBatch& batch_;
  std::vector<float>& losses_;
  std::vector<int32_t> rows_;  // with a loss
  std::vector<int32_t> targets_;
  std::vector<float> weights_;
};

}  // namespace

Array apply_head_loss(Backend& backend, const Decoder& decoder, const TrainBatch& batch,
                      std::vector<float>& losses, const Array& residual) {
  return autodiff::apply_new<HeadLoss>({residual}, backend, decoder, batch, losses);
}

}  // namespace paceline
