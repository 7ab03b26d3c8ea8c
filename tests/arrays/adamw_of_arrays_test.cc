// AdamW of public arrays against the formula in float64, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "paceline/grad.h"
#include "tests/expect_error.h"

namespace paceline::arrays {
namespace {

constexpr AdamWOptions kOptions = {
    .learning_rate = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};

// One element by the formula.
struct Element {
  double value;
  double first = 0.0;
  double second = 0.0;

  void step(double gradient, int count) {
    const AdamWOptions& o = kOptions;
    first = o.beta1 * first + (1 - o.beta1) * gradient;
    second = o.beta2 * second + (1 - o.beta2) * gradient * gradient;
    const double corrected = first / (1 - std::pow(o.beta1, count));
    const double root = std::sqrt(second / (1 - std::pow(o.beta2, count))) + o.epsilon;
    value = value * (1 - o.learning_rate * o.weight_decay) - o.learning_rate * corrected / root;
  }
};

std::vector<Array> gradients_of(int step, int64_t count) {
  return {normal({count}, {.seed = 10 + static_cast<uint64_t>(step)})};
}

TEST(AdamWOfArrays, FollowsTheFormula) {
  constexpr int64_t kCount = 40000;  // shared out among threads
  std::vector<Array> weights = {normal({kCount}, {.seed = 1})};
  std::vector<Element> expected;
  for (const float value : weights[0].elements()) expected.push_back({value});
  AdamW optimizer(kOptions);
  for (int step = 1; step <= 5; ++step) {
    const std::vector<Array> gradients = gradients_of(step, kCount);
    optimizer.step(weights, gradients);
    size_t i = 0;
    for (const float gradient : gradients[0].elements()) expected[i++].step(gradient, step);
  }
  EXPECT_EQ(optimizer.num_steps(), 5);
  size_t i = 0;
  for (const float value : weights[0].elements()) {
    ASSERT_NEAR(value, expected[i].value, 1e-5) << i;
    ++i;
  }
}

TEST(AdamWOfArrays, ByNameOrByIndexIsTheSame) {
  std::vector<Array> listed;
  NamedArrays named;
  for (uint64_t i = 0; i < 12; ++i) {  // by name, "w10" comes before "w2"
    listed.push_back(normal({3}, {.seed = i}));
    named["w" + std::to_string(i)] = listed.back();
  }
  AdamW of_list(kOptions), of_names(kOptions);
  for (int step = 0; step < 3; ++step) {
    const std::vector<Array> gradients(12, gradients_of(step, 3)[0]);
    NamedArrays by_name;
    for (const auto& [name, array] : named) by_name[name] = gradients[0];
    of_list.step(listed, gradients);
    of_names.step(named, by_name);
  }
  for (size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i].to_vector(), named.at("w" + std::to_string(i)).to_vector());
  }
}

TEST(AdamWOfArrays, OtherArraysKeepTheirElements) {
  std::vector<Array> weights = {ones({2, 2})};
  const Array copy = weights[0], row = weights[0][0], turned = transpose(weights[0]);
  AdamW optimizer(kOptions);
  optimizer.step(weights, {ones({2, 2})});
  EXPECT_EQ(copy.to_vector(), std::vector<float>(4, 1.0f));
  EXPECT_EQ(row.to_vector(), std::vector<float>(2, 1.0f));
  EXPECT_NE(weights[0].to_vector()[0], 1.0f);
  const float* elements = weights[0].data<float>().data();
  optimizer.step(weights, {ones({2, 2})});  // nobody shares them now: in place
  EXPECT_EQ(weights[0].data<float>().data(), elements);
  // The weight is its own gradient, of other strides.
  std::vector<Array> views = {transpose(normal({2, 2}, {.seed = 4}))};
  const std::vector<float> before = views[0].to_vector();
  AdamW(AdamWOptions{.learning_rate = 0.0}).step(views, views);
  EXPECT_EQ(views[0].to_vector(), before);
}

TEST(AdamWOfArrays, ContinuesFromItsState) {
  NamedArrays weights = {{"a", normal({3}, {.seed = 1})}, {"b.c", normal({2, 2}, {.seed = 2})}};
  const auto gradient = [](const NamedArrays& w) {
    return value_and_grad([](const NamedArrays& x) {
             return sum(x.at("a") * x.at("a")) + sum(tanh(x.at("b.c")));
           })(w)
        .gradients;
  };
  AdamW whole(kOptions);
  for (int i = 0; i < 2; ++i) whole.step(weights, gradient(weights));
  NamedArrays resumed = weights;
  AdamW second(kOptions);
  second.restore(whole.state(), whole.num_steps());
  whole.step(weights, gradient(weights));
  second.step(resumed, gradient(resumed));
  EXPECT_EQ(second.num_steps(), 3);
  for (const auto& [name, array] : weights) {
    EXPECT_EQ(resumed.at(name).to_vector(), array.to_vector()) << name;
  }
  EXPECT_EQ(whole.state().size(), 4u);
  EXPECT_EQ(whole.state().at("b.c.second_moment").shape(), (Shape{2, 2}));
}

TEST(AdamWOfArrays, RefusesWhatDoesNotFitAndChangesNothing) {
  NamedArrays weights = {{"a", ones({2})}, {"b", ones({3})}};
  AdamW optimizer(kOptions);
  const auto refused = [&](const std::vector<std::string>& parts, const NamedArrays& gradients) {
    expect_error(ErrorCode::invalid, parts, [&] { optimizer.step(weights, gradients); });
  };
  refused({"weight b", "without a gradient"}, {{"a", ones({2})}});
  refused({"gradient of c"}, {{"a", ones({2})}, {"b", ones({3})}, {"c", ones({1})}});
  refused({"weight b of [3]", "[2]"}, {{"a", ones({2})}, {"b", ones({2})}});
  refused({"gradient b", "float16"}, {{"a", ones({2})}, {"b", ones({3}, DType::float16)}});
  refused({"gradient b", "empty"}, {{"a", ones({2})}, {"b", Array()}});
  EXPECT_EQ(optimizer.num_steps(), 0);
  EXPECT_EQ(weights.at("a").to_vector(), std::vector<float>(2, 1.0f));
  optimizer.step(weights, {{"a", ones({2})}, {"b", ones({3})}});
  std::vector<Array> others = {ones({2})}, two = {ones({2}), ones({3})};
  expect_error(ErrorCode::invalid, {"1 weights", "the 2"}, [&] { optimizer.step(others, others); });
  expect_error(ErrorCode::invalid, {"weight 0", "it wasn't"}, [&] { optimizer.step(two, two); });
  expect_error(ErrorCode::invalid, {"0 gradients of 1"}, [&] { optimizer.step(others, {}); });
  NamedArrays longer = {{"a", ones({5})}, {"b", ones({3})}};
  expect_error(ErrorCode::invalid, {"weight a of [5]", "[2]"},
               [&] { optimizer.step(longer, longer); });
  EXPECT_EQ(optimizer.num_steps(), 1);
  expect_error(ErrorCode::invalid, {"weight 0", "transformation"}, [] {
    value_and_grad([](const std::vector<Array>& in) {
      std::vector<Array> inside = in;
      AdamW().step(inside, {ones({2})});
      return sum(in[0]);
    })(std::vector<Array>{ones({2})});
  });
}

TEST(AdamWOfArrays, RefusesOptionsAndStates) {
  const std::vector<AdamWOptions> wrong = {{.learning_rate = -1.0}, {.learning_rate = NAN},
                                           {.beta1 = 1.0},          {.beta2 = -0.1},
                                           {.epsilon = -1e-8},      {.weight_decay = INFINITY}};
  for (const AdamWOptions& options : wrong) {
    expect_error(ErrorCode::invalid, {"AdamW", "expected"}, [&] { AdamW{options}; });
  }
  AdamW optimizer({.learning_rate = 0.5});
  EXPECT_EQ(optimizer.learning_rate(), 0.5);
  expect_error(ErrorCode::invalid, {"learning_rate -2"},
               [&] { optimizer.set_learning_rate(-2.0); });
  optimizer.set_learning_rate(0.25);
  EXPECT_EQ(optimizer.learning_rate(), 0.25);
  const auto refused = [&](const std::vector<std::string>& parts, const NamedArrays& state) {
    expect_error(ErrorCode::invalid, parts, [&] { optimizer.restore(state, 1); });
  };
  refused({"a state with a"}, {{"a", ones({1})}});
  refused({"state of a", "two moments"}, {{"a.first_moment", ones({1})}});
  refused({"state of a"}, {{"a.first_moment", ones({1})}, {"a.second_moment", ones({2})}});
  refused({"int32"}, {{"a.first_moment", integers({1}, {1})}});
  expect_error(ErrorCode::invalid, {"-1 steps"}, [&] { optimizer.restore({}, -1); });
}

}  // namespace
}  // namespace paceline::arrays
