#include "train/muon.h"

#include <algorithm>
#include <cmath>

#include "train/newton_schulz.h"

namespace paceline {
namespace {

constexpr int64_t kUpdateGrain = 1 << 14;

}  // namespace

Muon::Muon(Backend& backend, const std::vector<TrainedParameter*>& parameters,
           const MuonOptions& options)
    : backend_(backend), options_(options) {
  std::vector<TrainedParameter*> others;
  for (TrainedParameter* const one : parameters) {
    const bool is_matrix = one->kind() == TrainedParameter::Kind::matrix;
    (is_matrix ? matrices_ : others).push_back(one);
  }
  for (const TrainedParameter* const one : matrices_) {
    momenta_.push_back(allocate_tensor(backend.memory(), DType::f32, one->value().shape()));
  }
  adamw_ = std::make_unique<AdamW>(std::move(others), options.adamw, backend.memory());
}

std::vector<Optimizer::State> Muon::state() const {
  std::vector<State> all = adamw_->state();
  for (size_t i = 0; i < matrices_.size(); ++i) {
    all.push_back({matrices_[i]->path() + ".momentum", momenta_[i].view});
  }
  return all;
}

void Muon::move(double learning_rate, double gradient_factor, ThreadPool& threads) {
  for (size_t i = 0; i < matrices_.size(); ++i) {
    move_matrix(i, learning_rate, gradient_factor, threads);
  }
  adamw_->set_num_steps(num_steps() - 1);
  adamw_->step(learning_rate * options_.adamw_rate, gradient_factor, threads);
}

void Muon::move_matrix(size_t index, double learning_rate, double gradient_factor,
                       ThreadPool& threads) {
  const TrainedParameter& matrix = *matrices_[index];
  const Extents& shape = matrix.value().shape();
  const OwnedTensor update =
      allocate_tensor(backend_.memory(), DType::f32, shape, Contents::undefined);
  const auto factor = static_cast<float>(gradient_factor * double{matrix.scale()});
  const auto kept = static_cast<float>(options_.momentum);
  const auto added = static_cast<float>(1.0 - options_.momentum);
  auto* const momentum = momenta_[index].view.elements<float>();
  auto* const updates = update.view.elements<float>();
  const auto* const gradients = matrix.gradient().elements<float>();
  const int64_t count = update.view.num_elements();
  threads.parallel_for(count, kUpdateGrain, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t i = begin; i < end; ++i) {
      const float gradient = gradients[i] * factor;
      momentum[i] = kept * momentum[i] + added * gradient;
      updates[i] = kept * momentum[i] + added * gradient;
    }
  });
  orthogonalise(backend_, threads, options_.dtype, update.view);

  const double height = static_cast<double>(shape[0]) / static_cast<double>(shape[1]);
  const auto rate = static_cast<float>(learning_rate * std::sqrt(std::max(1.0, height)));
  const auto left = static_cast<float>(1.0 - learning_rate * options_.weight_decay);
  auto* const values = matrix.value().elements<float>();
  threads.parallel_for(count, kUpdateGrain, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t i = begin; i < end; ++i) values[i] = values[i] * left - rate * updates[i];
  });
}

}  // namespace paceline
