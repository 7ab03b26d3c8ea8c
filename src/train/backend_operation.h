// BackendOperation is an operation on arrays that a Backend computes. It has a vjp that nothing
// outside follows, and no jvp.
#pragma once

#include <string>

#include "autodiff/operation.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/gradients.h"

namespace paceline {

class BackendOperation : public autodiff::Operation {
 public:
  explicit BackendOperation(Backend& backend) : backend_(backend) {}

  autodiff::Array jvp(const autodiff::Arrays& /*tangents*/, const autodiff::Arrays& /*inputs*/,
                      const autodiff::Array& /*output*/) const final {
    throw Error(ErrorCode::unsupported, std::string(name()) + ": has no forward derivative");
  }

 protected:
  Backend& backend() const { return backend_; }
  GradientOps& gradients() const { return backend_.gradients(); }
  // A new float32 array that is like `like` but for its shape, all of which will be written.
  static autodiff::Array new_array(const autodiff::Array& like, const Extents& shape) {
    return {like.context(), DType::f32, shape, Contents::undefined};
  }
  // The elements of an array that nothing follows. Throws Error unsupported where an outer
  // transformation does.
  const Tensor& untraced(const autodiff::Array& array) const {
    if (array.traced() == nullptr) return array.tensor();
    throw Error(ErrorCode::unsupported, std::string(name()) + ": has no second derivative");
  }

 private:
  Backend& backend_;
};

}  // namespace paceline
