// What the files of op cases share: their seed, and an instance of inputs that have an output.
#pragma once

#include <cstdint>
#include <memory>

#include "tests/kernels/op_cases.h"
#include "tests/kernels/op_inputs.h"

namespace paceline {

constexpr uint64_t kCaseSeed = 20240611;

template <class Inputs, class Run>
OpInstance instance(std::shared_ptr<Inputs> inputs, Run run) {
  const Tensor out = inputs->out.view;
  return {[inputs, run](Backend& backend) { run(backend, *inputs); },
          [out] { return to_vector(out); }, inputs};
}

}  // namespace paceline
