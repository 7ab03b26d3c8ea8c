// Linear layers, and a LoRA pair that is trained beside a frozen one.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "paceline/grad.h"
#include "paceline/linear.h"
#include "tests/expect_error.h"

namespace paceline::arrays {
namespace {

TEST(LinearOfArrays, ComputesItsProduct) {
  const Linear layer{.weight = Array({1, 2, 3, 4, 5, 6}, {3, 2}), .bias = Array({10, 20, 30}, {3})};
  EXPECT_EQ(layer(Array({1, 1}, {1, 2})).to_vector(), (std::vector<float>{13, 27, 41}));
  EXPECT_EQ(layer(Array({1, 1}, {2})).shape(), (Shape{3}));
  EXPECT_EQ(layer(ones({2, 4, 2})).shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(Linear{.weight = layer.weight}(ones({2})).to_vector(), (std::vector<float>{3, 7, 11}));
}

TEST(LinearOfArrays, BeginsWithinItsBoundAndIsFoundByName) {
  const Linear layer = Linear::create(16, 8, {.seed = 3});
  for (const float value : layer.weight.elements()) EXPECT_LE(std::abs(value), 0.25f);
  EXPECT_EQ(layer.bias.shape(), (Shape{8}));
  EXPECT_NE(slice(reshape(layer.weight, {128}), {.end = 8}).to_vector(), layer.bias.to_vector());
  EXPECT_TRUE(Linear::create(2, 2, {}, Bias::none).bias.is_empty());
  NamedArrays weights;
  layer.add_to(weights, "out");
  EXPECT_EQ(weights.size(), 2u);
  EXPECT_EQ(Linear::of(weights, "out")(ones({16})).to_vector(), layer(ones({16})).to_vector());
  weights.erase("out.bias");
  EXPECT_TRUE(Linear::of(weights, "out").bias.is_empty());
  expect_error(ErrorCode::not_found, {"in.weight"}, [&] { Linear::of(weights, "in"); });
}

TEST(LoraOfArrays, BeginsAsItsBaseAndLearnsBesideIt) {
  const Linear base = Linear::create(6, 4, {.seed = 1});
  const Linear wanted = Linear::create(6, 4, {.seed = 2});
  const LoraOptions options{.rank = 3, .alpha = 6.0f};
  NamedArrays pair;
  LoraLinear::create(base, options, {.seed = 3}).add_to(pair, "layer");
  const Array x = normal({32, 6}, {.seed = 4}), y = wanted(x);
  EXPECT_EQ(LoraLinear::of(base, options, pair, "layer")(x).to_vector(), base(x).to_vector());
  const auto loss_of = value_and_grad([&](const NamedArrays& weights) {
    return mse(LoraLinear::of(base, options, weights, "layer")(x), y);
  });
  const float first = loss_of(pair).value.item();
  const std::vector<float> frozen = base.weight.to_vector();
  AdamW optimizer({.learning_rate = 0.02, .weight_decay = 0.0});
  for (int step = 0; step < 300; ++step) optimizer.step(pair, loss_of(pair).gradients);
  EXPECT_LT(loss_of(pair).value.item(), 0.5f * first);
  EXPECT_EQ(base.weight.to_vector(), frozen);
  EXPECT_EQ(pair.size(), 2u);
  const LoraLinear trained = LoraLinear::of(base, options, pair, "layer");
  EXPECT_EQ(trained.scale, 2.0f);
  const std::vector<float> apart = trained(x).to_vector(), merged = trained.merged()(x).to_vector();
  for (size_t i = 0; i < apart.size(); ++i) EXPECT_NEAR(apart[i], merged[i], 1e-5f);
}

TEST(LoraOfArrays, RefusesShapesThatDoNotFit) {
  const Linear base = Linear::create(6, 4, {});
  const LoraLinear layer = LoraLinear::create(base, {}, {});
  const auto invalid = [](const std::vector<std::string>& parts, auto call) {
    expect_error(ErrorCode::invalid, parts, call);
  };
  invalid({"Linear", "0 inputs"}, [] { Linear::create(0, 4, {}); });
  invalid({"Linear", "[5] and [4, 6]"}, [&] { base(ones({5})); });
  invalid({"Linear", "[] and [4, 6]"}, [&] { base(ones({})); });
  invalid({"Linear", "[4, 6] and [3]"},
          [&] { Linear{.weight = base.weight, .bias = ones({3})}(ones({6})); });
  invalid({"Linear", "[6]"}, [] { Linear{.weight = ones({6})}(ones({6})); });
  invalid({"LoraLinear", "rank 0"}, [&] { LoraLinear::create(base, {.rank = 0}, {}); });
  invalid({"LoraLinear", "[6]"}, [] { LoraLinear::create({.weight = ones({6})}, {}, {}); });
  NamedArrays pair;
  layer.add_to(pair, "x");
  pair["x.lora_B.weight"] = ones({5, 8});
  invalid({"LoraLinear", "[4, 6] and [8, 6] and [5, 8]"},
          [&] { LoraLinear::of(base, {}, pair, "x"); });
  expect_error(ErrorCode::not_found, {"y.lora_A.weight"},
               [&] { LoraLinear::of(base, {}, pair, "y"); });
}

}  // namespace
}  // namespace paceline::arrays
