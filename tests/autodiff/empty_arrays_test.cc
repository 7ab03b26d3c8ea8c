// Operations on arrays without elements: results of the right shape, gradients of zero.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "autodiff/attention.h"
#include "autodiff/elementwise.h"
#include "autodiff/indexing.h"
#include "autodiff/matmul.h"
#include "autodiff/new_arrays.h"
#include "autodiff/normalisation.h"
#include "autodiff/reductions.h"
#include "autodiff/shapes.h"
#include "autodiff/transforms.h"

namespace paceline::autodiff {
namespace {

struct EmptyCase {
  const char* name;
  std::function<Array(const Arrays&)> operation;
  std::vector<Extents> inputs;
  Extents output;
};

TEST(EmptyArrays, HaveShapesAndGradients) {
  Memory memory;
  ThreadPool pool(2);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    const Context context{memory, threads};
    const Array no_ids = zeros(context, {0}, DType::i32);
    const Array no_mask = zeros(context, {0, 3}, DType::i8);
    const std::vector<EmptyCase> cases = {
        {"exp", [](const Arrays& x) { return exp(x[0]); }, {{0, 3}}, {0, 3}},
        {"add", [](const Arrays& x) { return x[0] + x[1]; }, {{0, 3}, {3}}, {0, 3}},
        {"where", [&](const Arrays& x) { return where(no_mask, x[0], x[1]); }, {{3}, {}}, {0, 3}},
        {"sum of rows", [](const Arrays& x) { return sum(x[0], {0}); }, {{0, 3}}, {3}},
        {"sum of columns", [](const Arrays& x) { return sum(x[0], {1}); }, {{0, 3}}, {0}},
        {"matmul", [](const Arrays& x) { return matmul(x[0], x[1]); }, {{0, 3}, {3, 2}}, {0, 2}},
        {"inner", [](const Arrays& x) { return matmul(x[0], x[1]); }, {{4, 0}, {0, 2}}, {4, 2}},
        {"batches",
         [](const Arrays& x) { return matmul(x[0], x[1]); },
         {{0, 2, 3}, {3, 2}},
         {0, 2, 2}},
        {"reshape",
         [](const Arrays& x) {
           return reshape(x[0], {3, 0});
         },
         {{0, 3}},
         {3, 0}},
        {"slice",
         [](const Arrays& x) {
           return slice(x[0], {0, 1, 1});
         },
         {{2, 3}},
         {0, 3}},
        {"concatenate",
         [](const Arrays& x) {
           return concatenate({x[0], x[1]}, 0);
         },
         {{0, 3}, {2, 3}},
         {2, 3}},
        {"gather", [&](const Arrays& x) { return gather(x[0], no_ids, 0); }, {{4, 3}}, {0, 3}},
        {"scatter", [&](const Arrays& x) { return scatter(x[0], no_ids, 0, 2); }, {{0, 3}}, {2, 3}},
        {"softmax", [](const Arrays& x) { return softmax(x[0]); }, {{0, 3}}, {0, 3}},
        {"log_sum_exp", [](const Arrays& x) { return log_sum_exp(x[0]); }, {{0, 3}}, {0}},
        {"rms_norm",
         [](const Arrays& x) { return rms_norm(x[0], x[1], 1.0f); },
         {{0, 3}, {3}},
         {0, 3}},
        {"layer_norm",
         [](const Arrays& x) { return layer_norm(x[0], x[1], x[1], 1.0f); },
         {{0, 3}, {3}},
         {0, 3}},
        {"rope",
         [](const Arrays& x) { return rope(x[0], stop_gradient(x[1])); },
         {{0, 2, 4}, {0, 2, 2}},
         {0, 2, 4}}};
    for (const EmptyCase& each : cases) {
      SCOPED_TRACE(each.name);
      Arrays inputs;
      for (const Extents& shape : each.inputs) inputs.push_back(uniform(context, shape, {1}));
      const auto function = [&](const Arrays& x) { return Arrays{each.operation(x)}; };
      const Array output = each.operation(inputs);
      EXPECT_EQ(output.shape(), each.output);
      const Vjp found = vjp(function, inputs, {ones(context, each.output)});
      for (size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_EQ(found.gradients[i].shape(), inputs[i].shape()) << i;
      }
      EXPECT_EQ(jvp(function, inputs, inputs).tangents[0].shape(), each.output);
    }
  }
}

}  // namespace
}  // namespace paceline::autodiff
