// vjp, jvp, value_and_grad and checkpoint of functions of public arrays.
#include "paceline/grad.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "tests/expect_error.h"

namespace paceline::arrays {
namespace {

using Floats = std::vector<float>;

Array cubed(const Array& x) { return x * x * x; }

TEST(Gradients, OfAVectorOfArrays) {
  const Array x({1, 2}, {2}), y({3, 4}, {2});
  const auto loss = [](const std::vector<Array>& w) { return sum(w[0] * w[0] * w[1]); };
  const auto all = value_and_grad(loss)(std::vector<Array>{x, y});
  EXPECT_EQ(all.value.item(), 19.0f);
  EXPECT_EQ(all.gradients[0].to_vector(), (Floats{6, 16}));
  EXPECT_EQ(all.gradients[1].to_vector(), (Floats{1, 4}));
  const auto second = value_and_grad(loss, {1})(std::vector<Array>{x, y});
  ASSERT_EQ(second.gradients.size(), 1u);
  EXPECT_EQ(second.gradients[0].to_vector(), (Floats{1, 4}));
  // A function of a span.
  const auto of_span = [](std::span<const Array> w) { return sum(cubed(w[0])); };
  EXPECT_EQ(value_and_grad(of_span)(std::vector<Array>{x}).gradients[0].to_vector(),
            (Floats{3, 12}));
}

TEST(Gradients, OfArraysByName) {
  const NamedArrays weights = {{"a", Array({1, 2}, {2})}, {"b", Array({3, 4}, {2})}};
  const auto [value, others, gradients] = value_and_grad([](const NamedArrays& w) {
    return std::vector<Array>{sum(w.at("a") * w.at("b")), w.at("a") * 2.0f};
  })(weights);
  EXPECT_EQ(value.item(), 11.0f);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].to_vector(), (Floats{2, 4}));
  EXPECT_EQ(gradients.at("a").to_vector(), (Floats{3, 4}));
  EXPECT_EQ(gradients.at("b").to_vector(), (Floats{1, 2}));
}

TEST(Gradients, CapturedArraysAreConstants) {
  const Array data({5, 6}, {2});
  const auto found = value_and_grad([&](const std::vector<Array>& w) { return sum(w[0] * data); })(
      std::vector<Array>{ones({2})});
  EXPECT_EQ(found.gradients[0].to_vector(), (Floats{5, 6}));
}

TEST(Gradients, OfWhatTheValueDoesNotUseAreZero) {
  const auto found = value_and_grad([](const std::vector<Array>& w) { return sum(w[0]); })(
      std::vector<Array>{ones({2}), ones({3})});
  EXPECT_EQ(found.gradients[1].to_vector(), (Floats{0, 0, 0}));
}

TEST(Gradients, CotangentsAndTangentsMayBeEmpty) {
  const auto function = [](const std::vector<Array>& x) {
    return std::vector<Array>{x[0] * 2.0f, x[0] * x[1]};
  };
  const std::vector<Array> primals = {Array({1, 2}, {2}), Array({3, 4}, {2})};
  const Vjp back = vjp(function, primals, {Array(), ones({2})});
  EXPECT_EQ(back.gradients[0].to_vector(), (Floats{3, 4}));
  EXPECT_EQ(back.outputs[1].to_vector(), (Floats{3, 8}));
  const Jvp forward = jvp(function, primals, {Array(), ones({2})});
  EXPECT_EQ(forward.tangents[0].to_vector(), (Floats{0, 0}));
  EXPECT_EQ(forward.tangents[1].to_vector(), (Floats{1, 2}));
}

TEST(Gradients, TransformationsNest) {
  const Array x({1, 2}, {2});
  const auto gradient = [](const std::vector<Array>& in) {
    return vjp([](const std::vector<Array>& z) { return cubed(z[0]); }, in, {ones({2})}).gradients;
  };
  const Jvp product = jvp(gradient, {x}, {ones({2})});
  EXPECT_EQ(product.outputs[0].to_vector(), (Floats{3, 12}));
  EXPECT_EQ(product.tangents[0].to_vector(), (Floats{6, 12}));
  const auto twice = value_and_grad(
      [&](const std::vector<Array>& in) { return sum(gradient(in)[0]); })(std::vector<Array>{x});
  EXPECT_EQ(twice.gradients[0].to_vector(), (Floats{6, 12}));
}

TEST(Checkpoints, RecomputeWithTheSameGradients) {
  int calls = 0;
  const auto layer = checkpoint([&calls](const Array& x, const Array& w) {
    ++calls;
    return tanh(matmul(x, w));
  });
  const std::vector<Array> inputs = {normal({3, 4}, {.seed = 1}), normal({4, 4}, {.seed = 2})};
  const auto plain = value_and_grad([](const std::vector<Array>& in) {
    return sum(tanh(matmul(tanh(matmul(in[0], in[1])), in[1])));
  })(inputs);
  const auto kept = value_and_grad(
      [&](const std::vector<Array>& in) { return sum(layer(layer(in[0], in[1]), in[1])); })(inputs);
  EXPECT_EQ(calls, 4);  // each once forward and once more backward
  EXPECT_EQ(kept.value.item(), plain.value.item());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(kept.gradients[i].to_vector(), plain.gradients[i].to_vector());
  }
  const auto of_vector = checkpoint([](const std::vector<Array>& in) {
    return std::vector<Array>{in[0] * in[1], in[0]};
  });
  EXPECT_EQ(of_vector(std::vector<Array>{ones({2}), ones({2})}).size(), 2u);
}

TEST(Checkpoints, RefuseCapturedArraysWhoseGradientIsWanted) {
  expect_error(ErrorCode::invalid, {"checkpoint", "isn't among its inputs"}, [] {
    value_and_grad([](const std::vector<Array>& in) {
      return sum(checkpoint([&in](const Array& x) { return x * in[1]; })(in[0]));
    })(std::vector<Array>{ones({2}), ones({2})});
  });
}

TEST(Gradients, AnExceptionOfTheFunctionPasses) {
  const auto failing = [](const std::vector<Array>&) -> Array { throw std::string("mine"); };
  EXPECT_THROW(value_and_grad(failing)(std::vector<Array>{ones({1})}), std::string);
}

}  // namespace
}  // namespace paceline::arrays
