// AdamWUpdate is the arithmetic of one step of AdamW on any range of elements.
#pragma once

#include <cmath>
#include <cstdint>

namespace paceline {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, with both corrected for their bias, then
// p = p (1 - lr wd) - lr m^ / (sqrt(v^) + eps). Each element is a fixed sequence of operations.
class AdamWUpdate {
 public:
  // Elements before and after the step, and their gradients.
  struct Arrays {
    float* values;
    const float* gradients;
    float* first_moments;
    float* second_moments;
  };

  // `num_steps` counts this one.
  AdamWUpdate(const AdamWOptions& options, int64_t num_steps, double learning_rate)
      : beta1_(static_cast<float>(options.beta1)),
        beta2_(static_cast<float>(options.beta2)),
        rest1_(static_cast<float>(1.0 - options.beta1)),
        rest2_(static_cast<float>(1.0 - options.beta2)),
        epsilon_(static_cast<float>(options.epsilon)),
        kept_(static_cast<float>(1.0 - learning_rate * options.weight_decay)),
        rate_(static_cast<float>(learning_rate /
                                 (1.0 - std::pow(options.beta1, static_cast<double>(num_steps))))),
        root_of_correction_(static_cast<float>(
            std::sqrt(1.0 - std::pow(options.beta2, static_cast<double>(num_steps))))) {}

  // Elements [begin, end), their gradients times `gradient_factor`.
  void apply(const Arrays& arrays, float gradient_factor, int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const float gradient = arrays.gradients[i] * gradient_factor;
      float& first = arrays.first_moments[i];
      float& second = arrays.second_moments[i];
      first = beta1_ * first + rest1_ * gradient;
      second = beta2_ * second + rest2_ * gradient * gradient;
      const float root = std::sqrt(second) / root_of_correction_ + epsilon_;
      arrays.values[i] = arrays.values[i] * kept_ - rate_ * first / root;
    }
  }

 private:
  float beta1_;
  float beta2_;
  float rest1_;
  float rest2_;
  float epsilon_;
  float kept_;
  float rate_;
  float root_of_correction_;
};

}  // namespace paceline
