#include "train/trained_experts.h"

#include "kernels/gradients.h"

namespace paceline {
namespace {

// Calls body(first, end) for neighbouring rows of one segment of the batch.
template <class Body>
void for_each_segment(std::span<const int32_t> batch_rows, const Body& body) {
  const int64_t count = std::ssize(batch_rows);
  const auto segment_of = [&](int64_t i) {
    return batch_rows[static_cast<size_t>(i)] / kGradientRows;
  };
  for (int64_t first = 0; first < count;) {
    int64_t end = first + 1;
    while (end < count && segment_of(end) == segment_of(first)) ++end;
    body(first, end);
    first = end;
  }
}

}  // namespace

void list_trained_segments(const LinearTraining& training, const RowsOfExpert& rows,
                           std::vector<LoraSegment>& segments) {
  for (const LoraProjection& lora : training.loras) {
    if (lora.b->is_zero()) continue;
    segments.push_back({.first_row = rows.first_row,
                        .num_rows = std::ssize(rows.batch_rows),
                        .a = &lora.a->packed(),
                        .b = &lora.b->packed(),
                        .first_column = lora.first_column});
  }
}

OwnedTensor TrainedExperts::new_tensor(int64_t rows, int64_t width) const {
  return allocate_tensor(backend_.memory(), DType::f32, {rows, width});
}

OwnedTensor TrainedExperts::gathered(const Tensor& x, std::span<const int32_t> rows) const {
  OwnedTensor out = new_tensor(std::ssize(rows), x.size(1));
  backend_.gather_rows(x, rows, out.view);
  return out;
}

TrainedExperts::Pass TrainedExperts::run(const GatedMlp& expert, const ExpertTraining* training,
                                         std::span<const int32_t> batch_rows,
                                         const Tensor& x) const {
  const auto count = std::ssize(batch_rows);
  const int64_t width = expert.config().intermediate_size;
  Pass pass{.x = gathered(x, batch_rows),
            .gate_up = new_tensor(count, expert.up_width()),
            .inner = new_tensor(count, width),
            .out = new_tensor(count, x.size(1))};
  const Tensor& gate_up = pass.gate_up.view;
  forward(expert.gate_up(), training == nullptr ? nullptr : &training->gate_up, batch_rows,
          pass.x.view, gate_up);
  expert.activate(backend_, gate_up, pass.inner.view);
  forward(expert.down(), training == nullptr ? nullptr : &training->down, batch_rows,
          pass.inner.view, pass.out.view);
  return pass;
}

void TrainedExperts::add_outputs(const GatedMlp& expert, const ExpertTraining& training,
                                 const Rows& rows, const Tensor& x, const Tensor& y) const {
  const Pass pass = run(expert, &training, rows.batch_rows, x);
  backend_.add_scaled_rows(pass.out.view, rows.batch_rows, rows.weights, y);
}

void TrainedExperts::add_gradients(const GatedMlp& expert, const ExpertTraining* training,
                                   const Rows& rows, const Tensor& x, const Tensor& all_dy,
                                   const Tensor& dx, std::span<double> dweights) const {
  const Pass pass = run(expert, training, rows.batch_rows, x);
  const OwnedTensor dy = gathered(all_dy, rows.batch_rows);
  multiply_rows(pass.out.view, dy.view, dweights);

  const OwnedTensor dinner = new_tensor(dy.view.size(0), expert.config().intermediate_size);
  backend_.scale(dy.view, rows.weights, dy.view);
  backward(expert.down(), training == nullptr ? nullptr : &training->down, rows.batch_rows,
           pass.inner.view, dy.view, dinner.view);
  expert.activation_gradient(backend_, pass.gate_up.view, dinner.view, pass.gate_up.view);
  const Tensor& d_rows = pass.out.view;
  backward(expert.gate_up(), training == nullptr ? nullptr : &training->gate_up, rows.batch_rows,
           pass.x.view, pass.gate_up.view, d_rows);
  backend_.gradients().embedding_gradient(rows.batch_rows, 1.0f, d_rows, dx);
}

Tensor TrainedExperts::dropped(const LoraProjection& lora, std::span<const int32_t> batch_rows,
                               const Tensor& x, OwnedTensor& kept) const {
  if (!dropout_.is_on()) return x;
  kept = new_tensor(x.size(0), x.size(1));
  drop_elements(backend_.gradients(), dropout_, lora.module, batch_rows, x, kept.view);
  return kept.view;
}

void TrainedExperts::forward(const Linear& linear, const LinearTraining* training,
                             std::span<const int32_t> batch_rows, const Tensor& x,
                             const Tensor& out) const {
  linear.forward(backend_, x, out);
  if (training == nullptr) return;
  std::vector<LoraSegment> segments;
  list_trained_segments(*training, {.batch_rows = batch_rows}, segments);
  if (!dropout_.is_on()) return backend_.add_lora(x, segments, out);
  size_t next = 0;
  for (const LoraProjection& lora : training->loras) {
    if (lora.b->is_zero()) continue;
    OwnedTensor kept;
    backend_.add_lora(dropped(lora, batch_rows, x, kept), {&segments[next++], 1}, out);
  }
}

void TrainedExperts::backward(const Linear& linear, const LinearTraining* training,
                              std::span<const int32_t> batch_rows, const Tensor& x,
                              const Tensor& dy, const Tensor& dx) const {
  linear_input_gradient(backend_, linear, dy, dx);
  if (training == nullptr) return;
  if (training->weight_gradient) {
    add_weight_gradient(batch_rows, dy, x, rounding_of(linear.weights().front()),
                        *training->weight_gradient);
  }
  if (training->bias_gradient) {
    for_each_segment(batch_rows, [&](int64_t first, int64_t end) {
      backend_.gradients().bias_gradient(dy.slice(0, first, end), *training->bias_gradient);
    });
  }
  for (const LoraProjection& lora : training->loras) add_pair(lora, batch_rows, x, dy, dx);
}

void TrainedExperts::add_pair(const LoraProjection& lora, std::span<const int32_t> batch_rows,
                              const Tensor& all_x, const Tensor& all_dy, const Tensor& dx) const {
  const Tensor dy = all_dy.slice(1, lora.first_column, lora.first_column + lora.b->value().size(0));
  OwnedTensor kept;
  const Tensor x = dropped(lora, batch_rows, all_x, kept);
  const OwnedTensor inner = new_tensor(x.size(0), lora.a->packed().n);
  backend_.matmul(x, lora.a->packed(), nullptr, inner.view);
  add_weight_gradient(batch_rows, dy, inner.view, lora.b->rounding(), lora.b->pass_gradient());
  if (lora.b->is_zero()) return;  // so are the gradients of A and x
  GradientOps& gradients = backend_.gradients();
  gradients.matmul_input_gradient(dy, lora.b->packed(), inner.view);
  add_weight_gradient(batch_rows, inner.view, x, lora.a->rounding(), lora.a->pass_gradient());
  if (!dropout_.is_on()) {
    return gradients.add_matmul_input_gradient(inner.view, lora.a->packed(), dx);
  }
  gradients.matmul_input_gradient(inner.view, lora.a->packed(), x);  // x is `kept`
  drop_elements(gradients, dropout_, lora.module, batch_rows, x, x);
  backend_.add(dx, x, dx);
}

void TrainedExperts::add_weight_gradient(std::span<const int32_t> batch_rows, const Tensor& dy,
                                         const Tensor& x, OperandRounding rounding,
                                         const Tensor& gradient) const {
  for_each_segment(batch_rows, [&](int64_t first, int64_t end) {
    backend_.gradients().matmul_weight_gradient(dy.slice(0, first, end), x.slice(0, first, end),
                                                rounding, gradient);
  });
}

void TrainedExperts::multiply_rows(const Tensor& a, const Tensor& b, std::span<double> out) const {
  std::vector<float> a_copy, b_copy;
  const std::span<const float> all_a = backend_.read(a, a_copy), all_b = backend_.read(b, b_copy);
  const auto width = static_cast<size_t>(a.size(1));
  for (size_t row = 0; row < out.size(); ++row) {
    double sum = 0;
    for (size_t i = row * width; i < (row + 1) * width; ++i) {
      sum += double{all_a[i]} * double{all_b[i]};
    }
    out[row] = sum;
  }
}

}  // namespace paceline
