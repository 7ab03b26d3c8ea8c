// Transformations: what they return, how they nest, what a tape keeps and when it frees it.
#include "autodiff/transforms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/elementwise.h"
#include "autodiff/indexing.h"
#include "autodiff/matmul.h"
#include "autodiff/new_arrays.h"
#include "autodiff/operation.h"
#include "autodiff/reductions.h"
#include "autodiff/shapes.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

class Transforms : public testing::Test {
 protected:
  Array scalar(float value) { return from_values(context_, {&value, 1}, {}); }

  Memory memory_;
  Context context_{memory_};
};

TEST_F(Transforms, ValueAndGradients) {
  // f(x, y) = x^2 y; df/dx = 2 x y, df/dy = x^2
  const auto f = [](const Arrays& in) { return Arrays{in[0] * in[0] * in[1], in[1]}; };
  const Arrays arguments = {scalar(3.0f), scalar(5.0f)};
  const ValueAndGrad found = value_and_grad(f, {1, 0})(arguments);
  EXPECT_EQ(to_scalar(found.value), 45.0f);
  ASSERT_EQ(found.others.size(), 1u);
  EXPECT_EQ(to_scalar(found.others[0]), 5.0f);
  ASSERT_EQ(found.gradients.size(), 2u);
  EXPECT_EQ(to_scalar(found.gradients[0]), 9.0f);
  EXPECT_EQ(to_scalar(found.gradients[1]), 30.0f);
  EXPECT_EQ(to_scalar(value_and_grad(f)(arguments).gradients.at(0)), 30.0f);
}

TEST_F(Transforms, UnusedAndConstantResults) {
  const Array x = scalar(2.0f), y = scalar(7.0f);
  const auto f = [&](const Arrays& in) { return Arrays{in[0] * in[0], y}; };
  const Vjp found = vjp(f, {x, y}, {scalar(1.0f), scalar(1.0f)});
  EXPECT_EQ(to_scalar(found.gradients[0]), 4.0f);
  EXPECT_EQ(to_scalar(found.gradients[1]), 0.0f);  // captured, so a constant
  const Jvp forward = jvp(f, {x, y}, {scalar(1.0f), Array()});
  EXPECT_EQ(to_scalar(forward.tangents[0]), 4.0f);
  EXPECT_EQ(to_scalar(forward.tangents[1]), 0.0f);
  const auto stopped = [](const Arrays& in) { return Arrays{stop_gradient(in[0]) * in[0]}; };
  EXPECT_EQ(to_scalar(vjp(stopped, {x}, {scalar(1.0f)}).gradients[0]), 2.0f);
}

// d^n/dx^n of x^5 by nesting each transformation in each.
TEST_F(Transforms, NestInAnyOrder) {
  using Transformation = Function (*)(const Function&);
  const Transformation reverse = [](const Function& f) -> Function {
    return [f](const Arrays& in) { return vjp(f, in, {ones(in[0].context(), {})}).gradients; };
  };
  const Transformation forward = [](const Function& f) -> Function {
    return [f](const Arrays& in) { return jvp(f, in, {ones(in[0].context(), {})}).tangents; };
  };
  const Function power = [](const Arrays& in) {
    return Arrays{in[0] * in[0] * in[0] * in[0] * in[0]};
  };
  const Arrays at = {scalar(2.0f)};
  for (const Transformation outer : {reverse, forward}) {
    EXPECT_EQ(to_scalar(outer(power)(at)[0]), 80.0f);
    for (const Transformation middle : {reverse, forward}) {
      EXPECT_EQ(to_scalar(outer(middle(power))(at)[0]), 160.0f);
      for (const Transformation inner : {reverse, forward}) {
        EXPECT_EQ(to_scalar(outer(middle(inner(power)))(at)[0]), 240.0f);
        EXPECT_EQ(to_scalar(outer(checkpoint(middle(checkpoint(inner(power)))))(at)[0]), 240.0f);
      }
    }
  }
}

// d/dx (x d/dy (x + y)) at y = 1 is 1: an outer variable is a constant of the inner derivative.
TEST_F(Transforms, VariablesOfDifferentLevelsStayApart) {
  const auto inner_derivative = [&](const Array& x, bool reverse) {
    const auto sum = [&](const Arrays& y) { return Arrays{x + y[0]}; };
    const Arrays one = {scalar(1.0f)};
    return reverse ? vjp(sum, one, one).gradients[0] : jvp(sum, one, one).tangents[0];
  };
  for (const bool inner : {false, true}) {
    const auto f = [&](const Arrays& x) { return Arrays{x[0] * inner_derivative(x[0], inner)}; };
    EXPECT_EQ(to_scalar(vjp(f, {scalar(3.0f)}, {scalar(1.0f)}).gradients[0]), 1.0f);
    EXPECT_EQ(to_scalar(jvp(f, {scalar(3.0f)}, {scalar(1.0f)}).tangents[0]), 1.0f);
  }
}

// Half of the squared norm of A x: its Hessian is A^T A.
TEST_F(Transforms, HessianVectorProducts) {
  const Array a = normal(context_, {5, 4}, {1}), x = normal(context_, {4, 1}, {2});
  const Array v = normal(context_, {4, 1}, {3});
  const auto gradient = [&](const Arrays& in) {
    const auto norm = [&](const Arrays& at) {
      const Array y = matmul(a, at[0]);
      return Arrays{0.5f * sum(y * y)};
    };
    return value_and_grad(norm)(in).gradients;
  };
  const std::vector<float> found = to_floats(jvp(gradient, {x}, {v}).tangents[0]);
  const std::vector<float> expected = to_floats(matmul(matmul(transpose(a, 0, 1), a), v));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-5);
}

// Doubles its input; notes how many bytes are active when its rule runs.
class NotesMemory final : public Operation {
 public:
  NotesMemory(const Memory& memory, std::vector<size_t>& active)
      : memory_(memory), active_(active) {}
  std::string_view name() const override { return "notes_memory"; }
  Array forward(const Arrays& inputs) const override { return 2.0f * inputs[0]; }
  Arrays vjp(const Array& cotangent, const Application&) const override {
    active_.push_back(memory_.stats().active_bytes);
    return one_gradient(2.0f * cotangent);
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return 2.0f * tangents[0];
  }

 private:
  const Memory& memory_;
  std::vector<size_t>& active_;
};

TEST_F(Transforms, TheTapeIsFreedWhileItIsWalked) {
  constexpr int kSteps = 8;
  constexpr size_t kBytes = 1024 * sizeof(float);
  std::vector<size_t> active;
  const auto chain = [&](const Arrays& in) {
    Array x = in[0];
    for (int i = 0; i < kSteps; ++i) x = apply_new<NotesMemory>({x}, memory_, active);
    return Arrays{x};
  };
  const Array x = ones(context_, {1024}), cotangent = ones(context_, {1024});
  const size_t before = memory_.stats().active_bytes;
  {
    const Vjp found = vjp(chain, {x}, {cotangent});
    EXPECT_EQ(to_floats(found.gradients[0])[0], 256.0f);
    ASSERT_EQ(active.size(), static_cast<size_t>(kSteps));
    EXPECT_EQ(active[0], before + kSteps * kBytes);
    // The output of the function stays, and the second rule on is given a gradient of the tape's.
    for (size_t i = 1; i < active.size(); ++i) {
      EXPECT_EQ(active[i], before + (kSteps - i + 2) * kBytes) << i;
    }
  }
  EXPECT_EQ(memory_.stats().active_bytes, before);
}

TEST_F(Transforms, ATapeKeepsOnlyWhatRulesRead) {
  const Array x = ones(context_, {1000});
  size_t after_forward = 0;
  const auto sums = [&](const Arrays& in) {
    Array y = in[0];
    for (int i = 0; i < 10; ++i) y = y + 1.0f;
    after_forward = memory_.stats().active_bytes;
    return Arrays{y};
  };
  const size_t before = memory_.stats().active_bytes;
  vjp(sums, {x}, {ones(context_, {1000})});
  EXPECT_LT(after_forward, before + 3 * 1024 * sizeof(float));
}

TEST_F(Transforms, CheckpointsKeepTheirInputsAlone) {
  const Array x = uniform(context_, {1000}, {1});
  const Function layer = [](const Arrays& in) {
    Array y = in[0];
    for (int i = 0; i < 10; ++i) y = tanh(y * y);
    return Arrays{y, exp(y)};
  };
  const auto measure = [&](const Function& f) {
    size_t active = 0;
    const auto network = [&](const Arrays& in) {
      Array y = in[0];
      for (int i = 0; i < 4; ++i) y = f({y})[i % 2];
      active = memory_.stats().active_bytes;
      return Arrays{y};
    };
    memory_.reset_peak();
    const Vjp found = vjp(network, {x}, {ones(context_, {1000})});
    return std::tuple(to_floats(found.gradients[0]), active, memory_.stats().peak_bytes);
  };
  const auto [gradient, active, peak] = measure(layer);
  const auto [same_gradient, less_active, less_peak] = measure(checkpoint(layer));
  EXPECT_EQ(gradient, same_gradient);
  EXPECT_LT(less_active, active / 4);
  EXPECT_LT(less_peak, peak / 2);
}

TEST_F(Transforms, CheckpointsOfInputsWithAndWithoutGradients) {
  const int32_t ids_values[] = {1, 0};
  const Array ids = from_integers(context_, ids_values, {2});
  const Array constant = ones(context_, {2}) * 3.0f, x = ones(context_, {2}) * 2.0f;
  const Function layer = checkpoint([](const Arrays& in) {
    return Arrays{gather(in[2] * in[2], in[0], 0) * in[1], in[2]};
  });
  const auto function = [&](const Arrays& in) { return Arrays{layer({ids, constant, in[0]})[0]}; };
  const float cotangent_values[] = {1.0f, 10.0f};
  const Vjp found = vjp(function, {x}, {from_values(context_, cotangent_values, {2})});
  EXPECT_EQ(to_floats(found.gradients[0]), (std::vector<float>{120.0f, 12.0f}));
}

TEST_F(Transforms, AnExceptionFreesTheTape) {
  const Array x = ones(context_, {10});
  const size_t before = memory_.stats().active_bytes;
  const auto fails = [&](const Arrays& in) -> Arrays {
    return {add(exp(in[0]), zeros(context_, {7}))};
  };
  expect_error(ErrorCode::invalid, {"add", "[10] and [7]"}, [&] { vjp(fails, {x}, {x}); });
  expect_error(ErrorCode::invalid, {"add", "[10] and [7]"}, [&] { jvp(fails, {x}, {x}); });
  EXPECT_EQ(memory_.stats().active_bytes, before);
}

TEST_F(Transforms, Misuse) {
  const Array x = ones(context_, {3}), y = ones(context_, {4});
  const auto same = [](const Arrays& in) { return Arrays{2.0f * in[0]}; };
  expect_error(ErrorCode::invalid, {"vjp", "[3] and [4]", "cotangents"},
               [&] { vjp(same, {x}, {y}); });
  expect_error(ErrorCode::invalid, {"vjp", "2 cotangents", "expected 1"}, [&] {
    vjp(same, {x}, {x, x});
  });
  expect_error(ErrorCode::invalid, {"jvp", "[3] and [4]", "tangents"},
               [&] { jvp(same, {x}, {y}); });
  expect_error(ErrorCode::invalid, {"value_and_grad", "[3]", "one element"},
               [&] { value_and_grad(same)({x}); });
  expect_error(ErrorCode::invalid, {"value_and_grad", "argnum 1"},
               [&] { value_and_grad(same, {1})({x}); });
  const int32_t ids_values[] = {1, 2};
  expect_error(ErrorCode::invalid, {"vjp", "int32"},
               [&] { vjp(same, {from_integers(context_, ids_values, {2})}, {x}); });

  Array escaped;
  const auto leaks = [&](const Arrays& in) {
    escaped = 2.0f * in[0];
    return Arrays{escaped};
  };
  vjp(leaks, {x}, {x});
  expect_error(ErrorCode::invalid, {"vjp", "after it has returned"}, [&] { exp(escaped); });

  const auto captures = [&](const Arrays& in) {
    const Array weight = exp(in[0]);
    return checkpoint([&](const Arrays& at) { return Arrays{at[0] * weight}; })({in[0]});
  };
  expect_error(ErrorCode::invalid, {"checkpoint", "isn't among its inputs"},
               [&] { vjp(captures, {x}, {x}); });
}

}  // namespace
}  // namespace paceline::autodiff
