// AdamW: Adam with decoupled weight decay (Loshchilov & Hutter, "Decoupled Weight Decay
// Regularization", ICLR 2019).
#pragma once

#include <vector>

#include "train/optimizer.h"

namespace paceline {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, with both corrected for their bias, then
// p = p (1 - lr wd) - lr m^ / (sqrt(v^) + eps). Each element is a fixed sequence of operations.
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
