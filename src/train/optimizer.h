// Optimizer moves trained parameters along their gradients, a step at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/tensor.h"
#include "train/trained_parameter.h"

namespace paceline {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // A step along the parameters' gradients times `gradient_factor`; doesn't pack them.
  void step(double learning_rate, double gradient_factor, ThreadPool& threads) {
    ++num_steps_;
    move(learning_rate, gradient_factor, threads);
  }

  // What it keeps from step to step, to save and to restore: float32 tensors, each named PATH.WHAT
  // after a parameter.
  struct State {
    std::string name;
    Tensor tensor;
  };
  virtual std::vector<State> state() const = 0;
  int64_t num_steps() const { return num_steps_; }
  void set_num_steps(int64_t count) { num_steps_ = count; }

 private:
  virtual void move(double learning_rate, double gradient_factor, ThreadPool& threads) = 0;

  int64_t num_steps_ = 0;
};

// The length of all gradients together, by the values: sqrt of the sum of (scale * gradient)^2, in
// double. Blocks of a fixed size are summed, then their sums in the parameters' order.
double gradient_norm(std::span<TrainedParameter* const> parameters, ThreadPool& threads);

}  // namespace paceline
