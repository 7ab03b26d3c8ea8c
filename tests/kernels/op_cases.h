// The table of op cases: each is run on every backend and instruction set against the reference,
// and the large ones are the kernel benchmark.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace paceline {

// One op on inputs of its own; run() may be called any number of times.
struct OpInstance {
  std::function<void(Backend&)> run;
  std::function<std::vector<float>()> result;
  std::shared_ptr<void> inputs;  // what run and result refer to
};

enum class CaseSize { small, large };

struct OpCase {
  std::string name;
  CaseSize size = CaseSize::small;
  double tolerance = 0.0;  // the largest |a - b| / (1 + |reference|)
  // The same where queries and the weights of a softmax are rounded to bfloat16, and sums of
  // products truncated, as on GPUs.
  double rounded_tolerance = 0.0;
  double flops = 0.0;  // of one run, when its speed is a matter of arithmetic
  double bytes = 0.0;  // else what it reads and writes at least
  std::function<OpInstance(ThreadPool&, Memory&)> make;
};

std::vector<OpCase> op_cases();

}  // namespace paceline
