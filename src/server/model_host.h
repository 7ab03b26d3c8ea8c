// ModelHost has the models that a server serves.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/hosted_model.h"

namespace paceline {

// I/O thread.
class ModelHost {
 public:
  void add(std::shared_ptr<HostedModel> model) { models_.push_back(std::move(model)); }

  // The model of requests that name none.
  const std::shared_ptr<HostedModel>& first() const { return models_.front(); }
  const std::vector<std::shared_ptr<HostedModel>>& models() const { return models_; }

  // Seconds since the last step of the engine that has taken longest for one.
  double step_age() const {
    double longest = 0;
    for (const auto& model : models_) longest = std::max(longest, model->step_age());
    return longest;
  }
  // A step of 10 s and more counts as hung.
  bool is_well() const {
    constexpr double kLongestStep = 10;
    return step_age() < kLongestStep;
  }

 private:
  std::vector<std::shared_ptr<HostedModel>> models_;
};

}  // namespace paceline
