// TrainedParameter is a tensor that training changes: its float32 value and its gradient.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/tensor.h"

namespace paceline {

class TrainedParameter {
 public:
  // What an optimizer may treat differently.
  enum class Kind : uint8_t {
    matrix,  // of a product inside a block
    table,   // of the vocabulary: embedding and head
    vector,  // norms and biases
  };

  // Views of contiguous float32 tensors of one shape that outlive it.
  TrainedParameter(std::string path, Kind kind, const Tensor& value, const Tensor& gradient)
      : path_(std::move(path)), kind_(kind), value_(value), gradient_(gradient) {}
  virtual ~TrainedParameter() = default;
  TrainedParameter(const TrainedParameter&) = delete;
  TrainedParameter& operator=(const TrainedParameter&) = delete;

  const std::string& path() const { return path_; }
  Kind kind() const { return kind_; }
  const Tensor& value() const { return value_; }
  const Tensor& gradient() const { return gradient_; }  // summed in place
  // The gradient is by scale() times the value.
  virtual float scale() const { return 1.0f; }

  virtual void clear_gradient() const;
  virtual void complete_gradient() const {}  // behind the passes of a step

 private:
  std::string path_;
  Kind kind_;
  Tensor value_;
  Tensor gradient_;
};

}  // namespace paceline
