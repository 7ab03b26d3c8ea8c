// The extension point: an operation that calls code outside of the module, saves an array for its
// backward rule, and refuses to be followed twice.
#include "autodiff/operation.h"

#include <gtest/gtest.h>

#include "autodiff/elementwise.h"
#include "autodiff/new_arrays.h"
#include "autodiff/shapes.h"
#include "autodiff/transforms.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

struct Calls {
  int forward = 0;
  int forward_and_save = 0;
  std::vector<size_t> num_saved{};
  Wanted wanted{};
};

// factor x^2; saves 2 factor x where it may. inputs: x, factor (a constant)
class SavingSquare final : public Operation {
 public:
  explicit SavingSquare(Calls& calls) : calls_(calls) {}

  std::string_view name() const override { return "saving_square"; }
  Array forward(const Arrays& inputs) const override {
    ++calls_.forward;
    return computed(inputs[0], to_scalar(inputs[1]), [](float x) { return x * x; });
  }
  Forward forward_and_save(const Arrays& inputs, const Wanted& wanted) const override {
    ++calls_.forward_and_save;
    calls_.wanted = wanted;
    const float factor = to_scalar(inputs[1]);
    return {.output = computed(inputs[0], factor, [](float x) { return x * x; }),
            .saved = {computed(inputs[0], factor, [](float x) { return 2.0f * x; })}};
  }
  Arrays vjp(const Array& cotangent, const Application& at) const override {
    calls_.num_saved.push_back(at.saved.size());
    const Array slope = at.saved.empty() ? 2.0f * at.inputs[0] * at.inputs[1] : at.saved[0];
    return {cotangent * slope, Array()};
  }
  Array jvp(const Arrays& tangents, const Arrays& inputs, const Array&) const override {
    return 2.0f * inputs[0] * inputs[1] * tangents[0];
  }

 private:
  template <class F>
  static Array computed(const Array& x, float factor, F f) {
    Array y(x.context(), DType::f32, x.shape());
    const Array values = as_contiguous_f32(x);
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      y.writable().elements<float>()[i] = factor * f(values.tensor().elements<float>()[i]);
    }
    return y;
  }

  Calls& calls_;
};

class Operations : public testing::Test {
 protected:
  Function square() {
    return [this](const Arrays& in) {
      return Arrays{apply_new<SavingSquare>({in[0], two_}, calls_)};
    };
  }

  Memory memory_;
  Context context_{memory_};
  Calls calls_;
  Array two_ = ones(context_, {}) + 1.0f;
  Array x_ = ones(context_, {3}) * 3.0f;
};

TEST_F(Operations, SaveForTheirRule) {
  const Vjp found = vjp(square(), {x_}, {ones(context_, {3})});
  EXPECT_EQ(to_floats(found.outputs[0]), std::vector<float>(3, 18.0f));
  EXPECT_EQ(to_floats(found.gradients[0]), std::vector<float>(3, 12.0f));
  EXPECT_EQ(calls_.forward_and_save, 1);
  EXPECT_EQ(calls_.forward, 0);
  EXPECT_EQ(calls_.num_saved, std::vector<size_t>{1});
  EXPECT_EQ(calls_.wanted, (Wanted{true, false}));
}

TEST_F(Operations, SaveNothingWithoutAGradientOrUnderAnotherTransformation) {
  square()({x_});
  EXPECT_EQ(calls_.forward, 1);
  EXPECT_EQ(calls_.forward_and_save, 0);
  const auto gradient = [&](const Arrays& in) {
    return vjp(square(), in, {ones(context_, {3})}).gradients;
  };
  const Jvp found = jvp(gradient, {x_}, {ones(context_, {3})});
  EXPECT_EQ(to_floats(found.outputs[0]), std::vector<float>(3, 12.0f));
  EXPECT_EQ(to_floats(found.tangents[0]), std::vector<float>(3, 4.0f));
  EXPECT_EQ(calls_.forward_and_save, 0);
  EXPECT_EQ(calls_.num_saved, std::vector<size_t>{0});
}

// Sums of gradients of one array, whether they are added in place or not.
TEST_F(Operations, GradientsOfSeveralUsesAddUp) {
  const auto uses = [](const Arrays& in) {
    Array sum = in[0] * 2.0f;
    for (int i = 0; i < 5; ++i) sum = sum + in[0] * static_cast<float>(i);
    return Arrays{sum, in[0]};
  };
  const Array cotangent = ones(context_, {3});
  const Vjp found = vjp(uses, {x_}, {cotangent, cotangent});
  EXPECT_EQ(to_floats(found.gradients[0]), std::vector<float>(3, 13.0f));
  EXPECT_EQ(to_floats(cotangent), std::vector<float>(3, 1.0f));
}

// The first gradient that arrives is a view of the caller's cotangent: nothing is added to that.
TEST_F(Operations, CotangentsStayAsTheyAre) {
  const auto uses = [](const Arrays& in) {
    const Array twice = in[0] * 2.0f;
    return Arrays{twice, reshape(in[0], {1, 3})};
  };
  const Array cotangent = ones(context_, {3}), row = ones(context_, {1, 3});
  EXPECT_EQ(to_floats(vjp(uses, {x_}, {cotangent, row}).gradients[0]), std::vector<float>(3, 3.0f));
  EXPECT_EQ(to_floats(row), std::vector<float>(3, 1.0f));
}

using OperationsDeathTest = Operations;

// A rule that returns a gradient of another shape.
class WrongShape final : public Operation {
 public:
  std::string_view name() const override { return "wrong_shape"; }
  Array forward(const Arrays& inputs) const override { return inputs[0] + 1.0f; }
  Arrays vjp(const Array& cotangent, const Application&) const override {
    return {Array(cotangent.context(), DType::f32, {7})};
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return tangents[0];
  }
};

// A rule that reads elements which it said it doesn't.
class ReadsTooMuch final : public Operation {
 public:
  std::string_view name() const override { return "reads_too_much"; }
  Array forward(const Arrays& inputs) const override { return inputs[0] + 1.0f; }
  Arrays vjp(const Array& cotangent, const Application& at) const override {
    return {cotangent * at.output};
  }
  Array jvp(const Arrays& tangents, const Arrays&, const Array&) const override {
    return tangents[0];
  }
  bool vjp_reads_output() const override { return false; }
};

TEST_F(OperationsDeathTest, WrongRulesAreBugs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wrong = [](const Arrays& in) { return Arrays{apply_new<WrongShape>({in[0]})}; };
  EXPECT_DEATH(vjp(wrong, {x_}, {x_}), "gradient of shape \\[7\\] of an input of shape \\[3\\]");
  const auto reads = [](const Arrays& in) { return Arrays{apply_new<ReadsTooMuch>({in[0]})}; };
  EXPECT_DEATH(vjp(reads, {x_}, {x_}), "weren't kept");
}

}  // namespace
}  // namespace paceline::autodiff
