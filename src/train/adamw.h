// AdamW: Adam with decoupled weight decay (Loshchilov & Hutter, "Decoupled Weight Decay
// Regularization", ICLR 2019).
#pragma once

#include <vector>

#include "train/adamw_update.h"
#include "train/optimizer.h"

namespace paceline {

class AdamW final : public Optimizer {
 public:
  // `parameters` must outlive it.
  AdamW(std::vector<TrainedParameter*> parameters, const AdamWOptions& options, Memory& memory);

  std::vector<State> state() const override;

 private:
  struct Moments {
    OwnedTensor first;
    OwnedTensor second;
  };

  void move(double learning_rate, double gradient_factor, ThreadPool& threads) override;

  std::vector<TrainedParameter*> parameters_;
  AdamWOptions options_;
  std::vector<Moments> moments_;
};

}  // namespace paceline
