// OperationCase checks one operation against its definition in float64: values, both derivatives,
// second derivatives, views and 16-bit floats.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autodiff/transforms.h"
#include "tests/autodiff/naive_array.h"

namespace paceline::autodiff {

struct OperationCase {
  std::string name;
  std::function<Array(const Arrays&)> operation;
  NaiveFunction definition;
  std::vector<Extents> shapes;  // of the inputs
  float low = -1.5f;            // their values are uniform
  float high = 1.5f;
  bool has_second_derivatives = true;
};

// Fails the running test where something differs.
void check_operation(const OperationCase& operation_case);

}  // namespace paceline::autodiff
