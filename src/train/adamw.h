// AdamW: Adam with decoupled weight decay (Loshchilov & Hutter, "Decoupled Weight Decay
// Regularization", ICLR 2019).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/tensor.h"
#include "train/trained_parameter.h"

namespace paceline {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, with both corrected for their bias, then
// p = p (1 - lr wd) - lr m^ / (sqrt(v^) + eps). Each element is a fixed sequence of operations.
class AdamW {
 public:
  // `parameters` must outlive it and stay in this order.
  AdamW(std::vector<TrainedParameter*> parameters, const AdamWOptions& options, Memory& memory);

  // A step along the parameters' gradients times `gradient_factor`; doesn't pack them.
  void step(double learning_rate, double gradient_factor, ThreadPool& threads);

  int64_t num_steps() const { return num_steps_; }
  // The state to save and to restore: m and v of each parameter, float32 of its shape.
  struct Moments {
    OwnedTensor first;
    OwnedTensor second;
  };
  std::span<Moments> moments() { return moments_; }
  void set_num_steps(int64_t count) { num_steps_ = count; }

 private:
  std::vector<TrainedParameter*> parameters_;
  AdamWOptions options_;
  std::vector<Moments> moments_;
  int64_t num_steps_ = 0;
};

// The length of all gradients together, by the values: sqrt of the sum of (scale * gradient)^2,
// summed in double in the parameters' order.
double gradient_norm(std::span<TrainedParameter* const> parameters);

}  // namespace paceline
