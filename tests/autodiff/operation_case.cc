#include "tests/autodiff/operation_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "autodiff/new_arrays.h"
#include "autodiff/shapes.h"

namespace paceline::autodiff {
namespace {

using Values = std::vector<double>;

constexpr double kFloat32Tolerance = 1e-5;
constexpr double kHalfTolerance = 2e-2;
constexpr double kSecondTolerance = 1e-4;  // differences of differences are less exact

Values doubles(const Array& array) {
  const std::vector<float> floats = to_floats(array);
  return Values(floats.begin(), floats.end());
}

NaiveArray naive_of(const Array& array) { return {array.shape(), doubles(array)}; }

NaiveArrays naive_of(const Arrays& arrays) {
  NaiveArrays naive;
  for (const Array& array : arrays) naive.push_back(naive_of(array));
  return naive;
}

double dot(const Values& a, const Values& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double largest(const Values& values) {
  double most = 0.0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

// Relative to the largest element, or to 1 if that is less.
void expect_near(const Values& found, const Values& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  const double bound = tolerance * std::max(1.0, largest(expected));
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], bound) << what << ", element " << i;
  }
}

NaiveArrays moved(NaiveArrays inputs, const std::vector<Values>& direction, double step) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t j = 0; j < inputs[i].values.size(); ++j) {
      inputs[i].values[j] += step * direction[i][j];
    }
  }
  return inputs;
}

// A view with the elements of `array` in another order of memory.
enum class Layout { transposed, sliced, backwards };

Array laid_out(const Array& array, Layout layout) {
  if (array.rank() == 0) return array;
  if (layout == Layout::transposed) {
    std::vector<int> reversed;
    for (int i = array.rank() - 1; i >= 0; --i) reversed.push_back(i);
    Array stored(array.context(), array.dtype(), permute(array, reversed).shape());
    copy_elements(permute(array, reversed).tensor(), stored.writable());
    return permute(stored, reversed);
  }
  Array view = array;
  for (int i = 0; i < array.rank(); ++i) {
    const int64_t size = array.size(i);
    view = layout == Layout::sliced
               ? slice(place(view, {i, 1, 1 + 2 * size, 2}, 2 * size + 3), {i, 1, 1 + 2 * size, 2})
               : slice(place(view, {i, size - 1, -1, -1}, size), {i, size - 1, -1, -1});
  }
  return view;
}

// One case with its inputs and directions.
class Check {
 public:
  Check(const OperationCase& operation_case, DType dtype) : case_(operation_case) {
    uint64_t seed = 1;
    for (const Extents& shape : case_.shapes) {
      inputs_.push_back(uniform(context_, shape, {seed++}, case_.low, case_.high, dtype));
      tangents_.push_back(uniform(context_, shape, {100 + seed}, -1.0f, 1.0f, dtype));
      directions_.push_back(doubles(tangents_.back()));
    }
    output_ = case_.operation(inputs_);
    cotangent_ = uniform(context_, output_.shape(), {1000}, -1.0f, 1.0f, output_.dtype());
  }

  void values(double tolerance) const {
    const NaiveArray expected = case_.definition(naive_of(inputs_));
    EXPECT_EQ(output_.shape(), expected.shape) << to_string(output_.shape());
    expect_near(doubles(output_), expected.values, tolerance, "value");
  }

  void derivatives(double tolerance) const {
    const Jvp forward = jvp(function(), inputs_, tangents_);
    expect_near(doubles(forward.tangents[0]), directional_difference(), tolerance, "jvp");
    const Vjp backward = vjp(function(), inputs_, {cotangent_});
    double left = dot(doubles(cotangent_), doubles(forward.tangents[0])), right = 0.0, size = 1.0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      EXPECT_EQ(backward.gradients[i].shape(), inputs_[i].shape());
      EXPECT_EQ(backward.gradients[i].dtype(), inputs_[i].dtype());
      const Values gradient = doubles(backward.gradients[i]);
      expect_near(gradient, gradient_difference(i), tolerance, "vjp, input " + std::to_string(i));
      right += dot(gradient, directions_[i]);
      for (size_t j = 0; j < gradient.size(); ++j) {
        size += std::abs(gradient[j] * directions_[i][j]);
      }
    }
    EXPECT_NEAR(left, right, tolerance * size) << "<cotangent, jvp> = <vjp, tangent>";
  }

  void second_derivatives() const {
    const auto gradients = [&](const Arrays& x) {
      return vjp(function(), x, {cotangent_}).gradients;
    };
    const Jvp product = jvp(gradients, inputs_, tangents_);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      expect_near(doubles(product.tangents[i]), second_difference(i), kSecondTolerance,
                  "jvp of vjp, input " + std::to_string(i));
    }
  }

  void layouts() const {
    const Vjp expected = vjp(function(), inputs_, {cotangent_});
    const Jvp expected_forward = jvp(function(), inputs_, tangents_);
    for (const Layout layout : {Layout::transposed, Layout::sliced, Layout::backwards}) {
      Arrays views, tangents;
      for (const Array& input : inputs_) views.push_back(laid_out(input, layout));
      for (const Array& tangent : tangents_) tangents.push_back(laid_out(tangent, layout));
      const Vjp found = vjp(function(), views, {laid_out(cotangent_, layout)});
      EXPECT_EQ(to_floats(found.outputs[0]), to_floats(expected.outputs[0]));
      for (size_t i = 0; i < inputs_.size(); ++i) {
        EXPECT_EQ(to_floats(found.gradients[i]), to_floats(expected.gradients[i])) << i;
      }
      const Jvp forward = jvp(function(), views, tangents);
      EXPECT_EQ(to_floats(forward.tangents[0]), to_floats(expected_forward.tangents[0]));
    }
  }

 private:
  Function function() const {
    return [this](const Arrays& inputs) { return Arrays{case_.operation(inputs)}; };
  }

  double weighted(const NaiveArrays& inputs) const {
    return dot(case_.definition(inputs).values, doubles(cotangent_));
  }

  Values directional_difference() const {
    constexpr double kStep = 1e-5;
    const NaiveArrays at = naive_of(inputs_);
    Values after = case_.definition(moved(at, directions_, kStep)).values;
    const Values before = case_.definition(moved(at, directions_, -kStep)).values;
    for (size_t i = 0; i < after.size(); ++i) after[i] = (after[i] - before[i]) / (2.0 * kStep);
    return after;
  }

  Values gradient_difference(size_t input) const {
    constexpr double kStep = 1e-5;
    NaiveArrays at = naive_of(inputs_);
    Values gradient;
    for (double& value : at[input].values) {
      const double kept = value;
      value = kept + kStep;
      const double after = weighted(at);
      value = kept - kStep;
      gradient.push_back((after - weighted(at)) / (2.0 * kStep));
      value = kept;
    }
    return gradient;
  }

  Values second_difference(size_t input) const {
    constexpr double kStep = 3e-4;
    NaiveArrays after = moved(naive_of(inputs_), directions_, kStep);
    NaiveArrays before = moved(naive_of(inputs_), directions_, -kStep);
    Values product;
    for (size_t i = 0; i < after[input].values.size(); ++i) {
      double sum = 0.0;
      for (const double sign : {1.0, -1.0}) {
        NaiveArrays late = after, early = before;
        late[input].values[i] += sign * kStep;
        early[input].values[i] += sign * kStep;
        sum += sign * (weighted(late) - weighted(early));
      }
      product.push_back(sum / (4.0 * kStep * kStep));
    }
    return product;
  }

  const OperationCase& case_;
  Memory memory_;
  Context context_{memory_};
  Arrays inputs_;
  Arrays tangents_;
  std::vector<Values> directions_;
  Array output_;
  Array cotangent_;
};

}  // namespace

void check_operation(const OperationCase& operation_case) {
  SCOPED_TRACE(operation_case.name);
  {
    const Check check(operation_case, DType::f32);
    check.values(kFloat32Tolerance);
    check.derivatives(kFloat32Tolerance);
    if (operation_case.has_second_derivatives) check.second_derivatives();
    check.layouts();
  }
  for (const DType dtype : {DType::bf16, DType::f16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const Check check(operation_case, dtype);
    check.values(kHalfTolerance);
    check.derivatives(kHalfTolerance);
    check.layouts();
  }
}

}  // namespace paceline::autodiff
