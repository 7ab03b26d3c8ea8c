// What a caller can get wrong: each is an Error that names the operation, what was found and what
// was expected. None ends the process.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "paceline/array.h"
#include "paceline/grad.h"
#include "paceline/linear.h"
#include "tests/expect_error.h"

namespace paceline::arrays {
namespace {

using In = std::vector<Array>;
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

struct Misuse {
  std::function<void()> call;
  std::vector<std::string> parts;  // of the message
  ErrorCode code = ErrorCode::invalid;
};

void expect_all(const std::vector<Misuse>& all) {
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE("misuse " + std::to_string(i));
    expect_error(all[i].code, all[i].parts, all[i].call);
  }
}

const Array& two() {
  static const Array array = ones({2, 3});
  return array;
}
const Array& ids() {
  static const Array array = integers({0, 1}, {2});
  return array;
}

TEST(ArraysMisuse, EmptyArrays) {
  const Array none;
  const std::vector<std::function<void()>> calls = {
      [&] { none.shape(); },
      [&] { none.strides(); },
      [&] { none.dtype(); },
      [&] { none.rank(); },
      [&] { none.size(0); },
      [&] { none.num_elements(); },
      [&] { none.is_contiguous(); },
      [&] { none.contiguous(); },
      [&] { none.data<float>(); },
      [&] { none.elements(); },
      [&] { none.to_vector(); },
      [&] { none.item(); },
      [&] { none[0]; },
      [&] {
        for (const Array& row : none) FAIL() << row.rank();
      },
      [&] { Array(none) += two(); },
      [&] { RandomKey{}.after(none); },
      [&] { none + two(); },
      [&] { two() - none; },
      [&] { none * 2.0f; },
      [&] { 2.0f / none; },
      [&] { where(none, two(), two()); },
      [&] { exp(none); },
      [&] { convert(none, DType::float16); },
      [&] { stop_gradient(none); },
      [&] { matmul(two(), none); },
      [&] { sum(none); },
      [&] { mean(none); },
      [&] { max(none); },
      [&] { sum_to(none, {1}); },
      [&] { reshape(none, {1}); },
      [&] { permute(none, {}); },
      [&] { transpose(none); },
      [&] { broadcast_to(none, {1}); },
      [&] { slice(none, {}); },
      [&] { place(none, {}, 1); },
      [&] {
        concatenate({two(), none});
      },
      [&] { gather(two(), none); },
      [&] { scatter(none, ids(), 0, 1); },
      [&] { scatter_add(two(), ids(), none); },
      [&] { embedding(none, ids()); },
      [&] { take_from_rows(two(), none); },
      [&] { add_to_rows(two(), ids(), none); },
      [&] { softmax(none); },
      [&] { log_sum_exp(none); },
      [&] { rms_norm(two(), none); },
      [&] { layer_norm(two(), ones({3}), none); },
      [&] { rope_table(none, two()); },
      [&] { rope(two(), none); },
      [&] { attention(two(), none, two()); },
      [&] { categorical(none, {}); },
      [&] { token_losses(two(), none); },
      [&] { cross_entropy(none, ids()); },
      [&] { chunked_cross_entropy(two(), none, ids()); },
      [&] { mse(none, two()); },
      [&] { vjp([](const In& x) { return x[0]; }, {none}, {two()}); },
      [&] { jvp([](const In& x) { return x[0]; }, {none}, {two()}); },
      [&] { vjp([&](const In&) { return none; }, {two()}, {two()}); },
      [&] { value_and_grad([&](const In&) { return none; })(In{two()}); },
      [&] { checkpoint([&](const Array&) { return none; })(two()); },
      [&] { checkpoint([](const Array& x) { return x; })(none); },
      [&] { Linear{.weight = none}(two()); },
      [&] { Linear{.weight = two()}(none); },
      [&] { LoraLinear{.base = {.weight = two()}, .a = none, .b = none}(two()); },
      [&] { LoraLinear{.base = {.weight = two()}, .a = none, .b = none}.merged(); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE("call " + std::to_string(i));
    expect_error(ErrorCode::invalid, {"an empty array"}, calls[i]);
  }
}

TEST(ArraysMisuse, ShapesOfNewArrays) {
  const Shape seven(7, 1), negative = {2, -1}, huge = {int64_t{1} << 40, int64_t{1} << 40};
  const Shape hidden = {0, kHighest, kHighest};
  expect_all({
      {[] {
         Array({1, 2}, {3});
       },
       {"[3]", "3 values, found 2"}},
      {[] {
         integers({1}, {2, 2});
       },
       {"[2, 2]", "4 values"}},
      {[&] { zeros(seven); }, {"zeros", "7 dimensions", "at most 6"}},
      {[&] { zeros(negative); }, {"zeros", "[2, -1]", "no negative"}},
      {[&] { zeros(huge); }, {"zeros", "1099511627776"}, ErrorCode::exhausted},
      {[&] { zeros(hidden); }, {"zeros"}, ErrorCode::exhausted},
      {[] { zeros({1}, static_cast<DType>(99)); }, {"dtype 99"}},
      {[] { Array({1}, {1}, DType::int32); }, {"int32", "expected float32"}},
      {[] { full({1}, 1.5f, DType::int32); }, {"1.5", "integer"}},
      {[] { uniform({1}, {}, 1.0f, 0.0f); }, {"uniform", "from 1 to 0"}},
      {[] { normal({1}, {}, 0.0f, 1.0f, DType::mask); }, {"normal", "int8"}},
      {[] { kaiming_normal({3}, {}); }, {"kaiming_normal", "[3]"}},
      {[] { categorical(ones({3}), {}); }, {"categorical", "[3]"}},
      {[] {
         categorical(full({1, 2}, -INFINITY), {});
       },
       {"row 0"},
       ErrorCode::numerical},
      {[] { set_num_threads(-1); }, {"-1"}},
  });
}

TEST(ArraysMisuse, ReadingElements) {
  const Array turned = transpose(two()), half = ones({1}, DType::float16), chosen = mask({1}, {});
  expect_all({
      {[&] { turned.data<float>(); }, {"[3, 2]", "strides", "contiguous()"}},
      {[&] { chosen.data<float>(); }, {"int8", "float"}},
      {[] { two().data<int32_t>(); }, {"float32", "int32_t"}},
      {[] { ids().elements(); }, {"int32", "float"}},
      {[&] { half.data<float>(); }, {"float16"}},
      {[] { two().item(); }, {"item", "[2, 3]"}},
      {[] { integers({1}, {1}).item(); }, {"item", "int32"}},
      {[] { two().size(2); }, {"size", "axis 2"}},
      {[] { two().size(-3); }, {"size", "axis -3"}},
      {[] { two()[2]; }, {"row 2", "[2, 3]"}},
      {[] { two()[kLowest]; }, {"row"}},
      {[] { zeros({})[0]; }, {"row 0"}},
      {[] {
         for (const Array& row : zeros({})) FAIL() << row.rank();
       },
       {"rows", "[]"}},
  });
}

TEST(ArraysMisuse, ShapesOfOperations) {
  const Array wide = broadcast_to(ones({1, 1}), {int64_t{1} << 39, 1});
  expect_all({
      {[] { two() + ones({2}); }, {"add", "[2, 3] and [2]", "broadcast"}},
      {[] { two() * ids(); }, {"multiply", "int32"}},
      {[&] { wide + transpose(wide); }, {"add"}, ErrorCode::exhausted},
      {[&] { where(mask({1}, {1}), wide, transpose(wide)); }, {"where"}, ErrorCode::exhausted},
      {[&] { matmul(wide, transpose(wide)); }, {}, ErrorCode::exhausted},
      {[&] {
         broadcast_to(wide, {4, int64_t{1} << 39, 1});
       },
       {},
       ErrorCode::exhausted},
      {[] { where(two(), two(), two()); }, {"where", "mask of float32"}},
      {[] { convert(two(), DType::int32); }, {"convert", "int32"}},
      {[] { convert(ids(), DType::float32); }, {"convert", "int32"}},
      {[] { equal(two(), ids()); }, {"equal", "int32"}},
      {[] { matmul(two(), two()); }, {"matmul", "[2, 3] and [2, 3]"}},
      {[] { matmul(two(), ones({3})); }, {"matmul", "[3]"}},
      {[] { sum(two(), {2}); }, {"sum", "axis 2"}},
      {[] {
         sum(two(), {0, -2});
       },
       {"sum", "once"}},
      {[] { max(zeros({0})); }, {"max", "[0]"}},
      {[] { mean(zeros({0})); }, {"mean", "[0]"}},
      {[] { sum(ids()); }, {"sum", "int32"}},
      {[] { sum_to(ids(), {}); }, {"sum_to", "int32"}},
      {[] { sum_to(two(), {2}); }, {"sum_to", "[2, 3]"}},
      {[] { reshape(two(), {4}); }, {"reshape", "6 elements", "[4]"}},
      {[] {
         reshape(two(), {-1, -1});
       },
       {"reshape"}},
      {[] {
         reshape(two(), {-2, 3});
       },
       {"reshape", "negative"}},
      {[] {
         reshape(zeros({0}), {0, kHighest, kHighest});
       },
       {"reshape"},
       ErrorCode::exhausted},
      {[] {
         permute(two(), {0, 0});
       },
       {"permute", "each of its axes once"}},
      {[] { transpose(ones({3})); }, {"transpose", "axis -2"}},
      {[] { broadcast_to(two(), {3}); }, {"broadcast_to", "[2, 3]"}},
      {[] {
         broadcast_to(two(), {-1, 3});
       },
       {"broadcast_to", "negative"}},
      {[] { concatenate(In{}); }, {"concatenate", "no array"}},
      {[] {
         concatenate({two(), ones({2})});
       },
       {"concatenate", "[2, 3] and [2]"}},
      {[] {
         concatenate({ids(), ids()});
       },
       {"concatenate", "int32"}},
  });
}

TEST(ArraysMisuse, Ranges) {
  const auto sliced = [](Range range) { return [range] { slice(two(), range); }; };
  expect_all({
      {sliced({.axis = 2}), {"slice", "axis 2"}},
      {sliced({.begin = 3}), {"slice", "from 3", "within 2"}},
      {sliced({.begin = -1}), {"slice", "from -1"}},
      {sliced({.end = 3}), {"slice", "to 3"}},
      {sliced({.end = -1}), {"slice", "to -1"}},
      {sliced({.step = 0}), {"slice", "steps of 0"}},
      {sliced({.begin = 2, .step = -1}), {"slice", "[2, -1)"}},
      {sliced({.begin = kLowest, .end = kHighest}), {"slice"}},
      {[] { place(two(), {}, 5); }, {"place", "[2, 3]"}},
      {[] { place(two(), {}, -1); }, {"place", "-1"}},
      {[] { place(two(), {}, kHighest); }, {"place"}},
      {[] { place(two(), {.axis = 4}, 2); }, {"place", "axis 4"}},
  });
  EXPECT_EQ(slice(two(), {.step = kHighest}).shape(), (Shape{1, 3}));
  EXPECT_EQ(slice(two(), {.begin = 1, .step = kLowest}).shape(), (Shape{1, 3}));
  EXPECT_EQ(slice(two(), {.begin = 2}).shape(), (Shape{0, 3}));
}

TEST(ArraysMisuse, Indices) {
  const Array far = integers({0, 5}, {2}), many = integers({0}, {1, 1, 1, 1, 1, 1});
  expect_all({
      {[&] { gather(two(), far); }, {"gather", "index 5", "below 2"}},
      {[] { gather(two(), integers({-1}, {1})); }, {"gather", "index -1"}},
      {[] { gather(two(), two()); }, {"gather", "float32"}},
      {[] { gather(two(), ids(), 2); }, {"gather", "axis 2"}},
      {[&] { gather(two(), many); }, {"gather", "at most 6"}},
      {[] { gather(ids(), ids()); }, {"gather", "int32"}},
      {[] { scatter(two(), ids(), 1, 4); }, {"scatter", "[2, 3] and [2]"}},
      {[] { scatter(two(), ids(), 0, -1); }, {"scatter"}},
      {[] { scatter(two(), ids(), 0, kHighest); }, {}, ErrorCode::exhausted},
      {[&] { scatter(two(), far, 0, 3); }, {"scatter", "index 5"}},
      {[] { scatter_add(two(), ids(), ones({2})); }, {"scatter_add", "[2, 3] and [2] and [2]"}},
      {[] { embedding(ones({3}), ids()); }, {"embedding", "[3]"}},
      {[] { take_from_rows(ones({}), ids()); }, {"take_from_rows"}},
      {[&] { take_from_rows(two(), far); }, {"take_from_rows", "index 5", "below 3"}},
      {[] { add_to_rows(two(), ids(), ones({3})); }, {"add_to_rows"}},
  });
}

TEST(ArraysMisuse, RowsAttentionAndLosses) {
  const Array q = ones({2, 2, 4}), k = ones({3, 1, 4});
  expect_all({
      {[] { softmax(two(), 5); }, {"softmax", "axis 5"}},
      {[] { softmax(ones({})); }, {"softmax"}},
      {[] { softmax(ids()); }, {"softmax", "int32"}},
      {[] {
         log_sum_exp(zeros({2, 0}));
       },
       {"log_sum_exp", "[2, 0]"}},
      {[] { rms_norm(two(), ones({2})); }, {"rms_norm", "[2, 3] and [2]"}},
      {[] { layer_norm(two(), ones({3}), ones({2})); }, {"layer_norm"}},
      {[] { rope_table(two(), ones({1})); }, {"rope_table"}},
      {[] { rope_table(ids(), ids()); }, {"rope_table", "int32"}},
      {[&] {
         rope(q, ones({2, 3, 2}));
       },
       {"rope", "[2, 2, 4] and [2, 3, 2]"}},
      {[&] {
         attention(q, k, ones({3, 1}));
       },
       {"attention"}},
      {[&] { attention(k, q, q); }, {"attention", "kv heads"}},
      {[] {
         attention(ones({0, 1, 4}), ones({1, 1, 4}), ones({1, 1, 4}));
       },
       {"attention"}},
      {[] {
         token_losses(two(), integers({0, 3}, {2}));
       },
       {"token_losses", "index 3", "below 3"}},
      {[] { cross_entropy(two(), two()); }, {"token_losses"}},
      {[] {
         cross_entropy(zeros({0, 3}), integers({}, {0}));
       },
       {"cross_entropy", "position"}},
      {[] {
         cross_entropy(two(), ids(), mask({0, 0}, {2}));
       },
       {"masked out"}},
      {[] { cross_entropy(two(), ids(), ones({2})); }, {"mask"}},
      {[] {
         chunked_cross_entropy(two(), ones({5, 2}), ids());
       },
       {"matmul", "[2, 3]"}},
      {[] { chunked_cross_entropy(two(), ones({3}), ids()); }, {"axis 1"}},
      {[] {
         chunked_cross_entropy(two(), ones({3, 5, 3}), ids());
       },
       {"logits [rows, vocab]"}},
      {[] { chunked_cross_entropy(two(), two(), ids(), {}, 0); }, {"chunks of 0 rows"}},
      {[] {
         chunked_cross_entropy(two(), two(), ids(), mask({0, 0}, {2}));
       },
       {"counts"}},
      {[] {
         chunked_cross_entropy(two(), two(), integers({0, 2}, {2}));
       },
       {"target 2 at row 1"}},
      {[] { mse(two(), ones({3})); }, {"mse", "[2, 3] and [3]"}},
  });
}

TEST(ArraysMisuse, Transformations) {
  const auto same = [](const In& x) { return x[0]; };
  const In ints = {ids()};
  expect_all({
      {[&] { vjp(same, {two()}, {}); }, {"vjp", "0 cotangents", "expected 1"}},
      {[&] { vjp(same, {two()}, {ones({2})}); }, {"vjp", "[2, 3] and [2]"}},
      {[&] { vjp(same, {two()}, {ids()}); }, {"vjp", "int32"}},
      {[&] { vjp(same, ints, {two()}); }, {"vjp", "int32"}},
      {[&] { jvp(same, {two()}, {}); }, {"jvp", "0 tangents"}},
      {[&] { jvp(same, {two()}, {ones({2})}); }, {"jvp", "[2, 3] and [2]"}},
      {[&] { jvp(same, ints, ints); }, {"jvp", "int32"}},
      {[&] { value_and_grad(same)(In{two()}); }, {"value_and_grad", "[2, 3]", "one element"}},
      {[&] { value_and_grad(same, {1})(In{zeros({})}); }, {"argnum 1", "1 arguments"}},
      {[&] { value_and_grad(same, {-1})(In{zeros({})}); }, {"argnum -1"}},
      {[] { value_and_grad([](const In&) { return In{}; })(In{two()}); }, {"no output"}},
      {[] {
         const auto any = [](const auto&) { return zeros({}); };
         value_and_grad(any, {0})(NamedArrays{{"a", two()}});
       },
       {"argnums with arrays by name"}},
      {[] { value_and_grad([](const In&) { return zeros({1}, DType::int32); })(In{two()}); },
       {"value_and_grad", "int32"}},
      {[] { vjp_of(nullptr, {two()}, {two()}); }, {"vjp", "no function"}},
      {[] {
         const auto loss = [](const In& x) { return chunked_cross_entropy(x[0], two(), ids()); };
         jvp([&](const In& x) { return vjp(loss, x, {ones({})}).gradients; }, {two()}, {two()});
       },
       {"chunked_cross_entropy", "gradient of its gradient"},
       ErrorCode::unsupported},
  });
}

TEST(ArraysMisuse, ArraysOfATransformationThatHasEnded) {
  Array kept;
  value_and_grad([&](const In& x) {
    kept = x[0] * 2.0f;
    return sum(x[0]);
  })(In{two()});
  EXPECT_EQ(kept.to_vector(), std::vector<float>(6, 2.0f));  // its values may be read
  expect_error(ErrorCode::invalid, {"vjp", "after it has returned"}, [&] { kept + two(); });
  EXPECT_EQ((stop_gradient(kept) + two()).to_vector(), std::vector<float>(6, 3.0f));
}

TEST(ArraysMisuse, ArraysOfATransformationInAnotherThread) {
  std::string message;
  const auto found = value_and_grad([&](const In& x) {
    std::thread([&] { message = error_message(ErrorCode::invalid, [&] { x[0] * 2.0f; }); }).join();
    return sum(x[0]);
  })(In{two()});
  EXPECT_NE(message.find("another thread"), std::string::npos) << message;
  EXPECT_EQ(found.gradients[0].to_vector(), std::vector<float>(6, 1.0f));
}

}  // namespace
}  // namespace paceline::arrays
