// DeviceLost: no later operation on the device that computes will succeed. It ends the engine,
// where other errors end the sequences of a step.
#pragma once

#include <string>

#include "base/error.h"

namespace paceline {

class DeviceLost : public Error {
 public:
  explicit DeviceLost(const std::string& message) : Error(ErrorCode::internal, message) {}
};

}  // namespace paceline
