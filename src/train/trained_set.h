// TrainedSet is what a run trains: parameters by path, and what of a decoder's pass they are.
#pragma once

#include <cstdint>
#include <vector>

#include "train/decoder_training.h"
#include "train/trained_parameter.h"

namespace paceline {

class Backend;

class TrainedSet {
 public:
  virtual ~TrainedSet() = default;

  const std::vector<TrainedParameter*>& parameters() const { return parameters_; }  // by path
  const DecoderTraining& training() const { return training_; }
  int64_t num_parameters() const;

  // Before the passes of a step.
  virtual void clear_gradients();
  // Behind them: gradients() of all parameters are then complete.
  virtual void complete_gradients();
  // After values have changed: passes read them from then on.
  virtual void pack(Backend& backend) = 0;

 protected:
  std::vector<TrainedParameter*> parameters_;
  DecoderTraining training_;
};

}  // namespace paceline
