#include "train/adamw.h"

#include <cmath>
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
  const auto steps = static_cast<double>(num_steps());
  const auto beta1 = static_cast<float>(options_.beta1);
  const auto beta2 = static_cast<float>(options_.beta2);
  const auto rest1 = static_cast<float>(1.0 - options_.beta1);
  const auto rest2 = static_cast<float>(1.0 - options_.beta2);
  const auto epsilon = static_cast<float>(options_.epsilon);
  const auto kept = static_cast<float>(1.0 - learning_rate * options_.weight_decay);
  const auto rate = static_cast<float>(learning_rate / (1.0 - std::pow(options_.beta1, steps)));
  const auto root_of_correction =
      static_cast<float>(std::sqrt(1.0 - std::pow(options_.beta2, steps)));
  for (size_t k = 0; k < parameters_.size(); ++k) {
    const TrainedParameter& parameter = *parameters_[k];
    const auto factor = static_cast<float>(gradient_factor * double{parameter.scale()});
    auto* const values = parameter.value().elements<float>();
    const auto* const gradients = parameter.gradient().elements<float>();
    auto* const first = moments_[k].first.view.elements<float>();
    auto* const second = moments_[k].second.view.elements<float>();
    constexpr int64_t kGrain = 1 << 14;
    threads.parallel_for(parameter.value().num_elements(), kGrain,
                         [&](int64_t begin, int64_t end, int /*thread*/) {
                           for (int64_t i = begin; i < end; ++i) {
                             const float gradient = gradients[i] * factor;
                             first[i] = beta1 * first[i] + rest1 * gradient;
                             second[i] = beta2 * second[i] + rest2 * gradient * gradient;
                             const float root = std::sqrt(second[i]) / root_of_correction + epsilon;
                             values[i] = values[i] * kept - rate * first[i] / root;
                           }
                         });
  }
}

}  // namespace paceline
