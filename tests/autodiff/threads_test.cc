// A pool changes no bit: arrays that are large enough for its threads to share them out.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "autodiff/attention.h"
#include "autodiff/chunked_loss.h"
#include "autodiff/elementwise.h"
#include "autodiff/indexing.h"
#include "autodiff/lines.h"
#include "autodiff/losses.h"
#include "autodiff/matmul.h"
#include "autodiff/new_arrays.h"
#include "autodiff/normalisation.h"
#include "autodiff/reductions.h"
#include "autodiff/shapes.h"
#include "autodiff/transforms.h"
#include "tests/expect_error.h"

namespace paceline::autodiff {
namespace {

constexpr int64_t kRows = 260, kColumns = 190;
static_assert(kRows * kColumns > 2 * kElementGrain);

using OperationList = std::vector<std::function<Array(const Arrays&)>>;

// Of x [kRows, kColumns], row [kColumns], scalar [] and square [kColumns, kColumns].
OperationList large_operations(const Context& context) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kRows; ++i) ids.push_back(i * 7 % static_cast<int32_t>(kColumns));
  const Array indices = from_integers(context, ids, {kRows});
  const auto heads = [](const Array& x) { return reshape(x, {kRows, 10, 19}); };
  const Array table = rope_table(indices, ones(context, {9}), 1.0f);
  return {[](const Arrays& x) { return gelu_erf(x[0]); },
          [](const Arrays& x) { return x[0] * x[2] + x[1]; },
          [](const Arrays& x) { return x[2] - x[0]; },
          [](const Arrays& x) { return x[0] / (x[0] * x[0] + 1.0f); },
          [](const Arrays& x) { return where(greater(x[0], x[1]), x[0], x[2]); },
          [](const Arrays& x) {
            return slice(x[0], {0, kRows - 1, -1, -1}) +
                   transpose(reshape(x[0], {kColumns, kRows}), 0, 1);
          },
          [](const Arrays& x) { return sum(x[0], {0}) * max(x[0], {0}); },
          [](const Arrays& x) { return sum(x[0], {1}) * max(x[0], {1}); },
          [](const Arrays& x) { return softmax(x[0]); },
          [](const Arrays& x) { return log_sum_exp(x[0]); },
          [](const Arrays& x) { return rms_norm(x[0], x[1], 0.1f); },
          [](const Arrays& x) { return layer_norm(x[0], x[1], x[1], 0.1f); },
          [](const Arrays& x) { return matmul(x[0], x[3]); },
          [=](const Arrays& x) { return embedding(x[3], indices); },
          [=](const Arrays& x) { return rope(heads(x[0]), table); },
          [=](const Arrays& x) {
            return attention(heads(x[0]), heads(x[0] * x[1]), heads(x[0]), {.scale = 0.2f});
          },
          [=](const Arrays& x) { return cross_entropy(x[0], indices); },
          [=](const Arrays& x) {
            return chunked_cross_entropy({.hidden = x[0],
                                          .weights = {x[3]},
                                          .targets = indices,
                                          .head = std::make_shared<LinearHead>()});
          }};
}

// Values and gradients of all operations.
std::vector<std::vector<float>> all_results(const Context& context) {
  const Arrays inputs = {normal(context, {kRows, kColumns}, {1}), normal(context, {kColumns}, {2}),
                         normal(context, {}, {3}), normal(context, {kColumns, kColumns}, {4})};
  std::vector<std::vector<float>> found;
  for (const Array& input : inputs) found.push_back(to_floats(input));
  for (const auto& operation : large_operations(context)) {
    const Array output = operation(inputs);
    found.push_back(to_floats(output));
    const auto function = [&](const Arrays& x) { return Arrays{operation(x)}; };
    const Vjp backward = vjp(function, inputs, {normal(context, output.shape(), {5})});
    for (const Array& gradient : backward.gradients) found.push_back(to_floats(gradient));
  }
  return found;
}

TEST(Threads, ShareAPoolInTurn) {
  Memory memory;
  const auto expected = all_results(Context{memory});
  SharedPool pool(3);
  EXPECT_EQ(pool.num_threads(), 3);
  const Context context{.memory = memory, .shared_pool = &pool};
  std::vector<std::vector<std::vector<float>>> found(2);
  std::vector<std::thread> threads;
  for (auto& results : found) {
    threads.emplace_back([&] { results = all_results(context); });
  }
  pool.set_num_threads(2);  // while they compute
  for (std::thread& thread : threads) thread.join();
  for (const auto& results : found) EXPECT_EQ(results, expected);
  expect_error(ErrorCode::invalid, {"-1 threads"}, [&] { pool.set_num_threads(-1); });
  EXPECT_EQ(pool.num_threads(), 2);
}

TEST(Threads, ChangeNoBit) {
  Memory memory;
  const auto expected = all_results(Context{memory});
  for (const int num_threads : {2, 3, 8}) {
    ThreadPool pool(num_threads);
    const auto found = all_results(Context{memory, &pool});
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], expected[i]) << i;
  }
}

}  // namespace
}  // namespace paceline::autodiff
