// Any thread may use any array: nets that are trained side by side, and arrays that threads share.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "paceline/grad.h"
#include "paceline/linear.h"
#include "tests/expect_error.h"

namespace paceline::arrays {
namespace {

constexpr int64_t kWidth = 96;  // large enough for products to be shared out

// The weights of a net after a few steps, by a seed.
std::vector<float> trained(uint64_t seed) {
  NamedArrays weights;
  Linear::create(kWidth, kWidth, {.seed = seed}).add_to(weights, "in");
  Linear::create(kWidth, 1, {.seed = seed + 1000}).add_to(weights, "out");
  const Array x = normal({kWidth, kWidth}, {.seed = seed + 2000}), y = x * x;
  const Array target = sum(y, {1}, Reduced::kept) / 100.0f;
  const auto loss = value_and_grad([&](const NamedArrays& w) {
    return mse(Linear::of(w, "out")(tanh(Linear::of(w, "in")(x))), target);
  });
  AdamW optimizer({.learning_rate = 0.01});
  for (int step = 0; step < 5; ++step) optimizer.step(weights, loss(weights).gradients);
  std::vector<float> all = weights.at("in.weight").to_vector();
  for (const float value : weights.at("out.weight").elements()) all.push_back(value);
  return all;
}

TEST(ArrayThreads, NetsTrainedSideBySideAreThoseTrainedAlone) {
  constexpr size_t kNumNets = 4;
  std::vector<std::vector<float>> alone, together(kNumNets);
  for (const int num_threads : {1, 3, 0}) {
    set_num_threads(num_threads);
    alone.push_back(trained(1));
  }
  EXPECT_EQ(alone[1], alone[0]);  // the number of threads changes no bit
  EXPECT_EQ(alone[2], alone[0]);
  set_num_threads(2);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kNumNets; ++i) {
    threads.emplace_back([&together, i] { together[i] = trained(i + 1); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kNumNets; ++i) EXPECT_EQ(together[i], trained(i + 1)) << i;
  set_num_threads(0);
}

TEST(ArrayThreads, ShareArrays) {
  const Array shared = normal({64, 64}, {.seed = 1});
  const std::vector<float> expected = matmul(shared, transpose(shared)).to_vector();
  std::vector<std::vector<float>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<float>& result : found) {
    threads.emplace_back([&shared, &result] {
      for (int i = 0; i < 20; ++i) {
        const Array view = transpose(shared);
        result = matmul(shared, view).to_vector();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : found) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace paceline::arrays
