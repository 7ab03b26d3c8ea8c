#include "train/adamw.h"

#include <utility>

namespace paceline {

AdamW::AdamW(std::vector<TrainedParameter*> parameters, const AdamWOptions& options, Memory& memory)
    : parameters_(std::move(parameters)), options_(options) {
  for (const TrainedParameter* const parameter : parameters_) {
    const Extents& shape = parameter->value().shape();
    moments_.push_back({.first = allocate_tensor(memory, DType::f32, shape),
                        .second = allocate_tensor(memory, DType::f32, shape)});
  }
}

std::vector<Optimizer::State> AdamW::state() const {
  std::vector<State> all;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    all.push_back({parameters_[i]->path() + ".first_moment", moments_[i].first.view});
    all.push_back({parameters_[i]->path() + ".second_moment", moments_[i].second.view});
  }
  return all;
}

void AdamW::move(double learning_rate, double gradient_factor, ThreadPool& threads) {
  const AdamWUpdate update(options_, num_steps(), learning_rate);
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const TrainedParameter& parameter = *parameters_[k];
    const auto factor = static_cast<float>(gradient_factor * double{parameter.scale()});
    const AdamWUpdate::Arrays arrays{.values = parameter.value().elements<float>(),
                                     .gradients = parameter.gradient().elements<float>(),
                                     .first_moments = moments_[k].first.view.elements<float>(),
                                     .second_moments = moments_[k].second.view.elements<float>()};
    constexpr int64_t kGrain = 1 << 14;
    threads.parallel_for(parameter.value().num_elements(), kGrain,
                         [&](int64_t begin, int64_t end, int /*thread*/) {
                           update.apply(arrays, factor, begin, end);
                         });
  }
}

}  // namespace paceline
