// Array: values, views, strides, iteration; new arrays and random ones.
#include "paceline/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace paceline::arrays {
namespace {

// 0, 1, 2, ... in row-major order.
Array counted(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0f);
  return Array(values, shape);
}

std::vector<float> read(const Array& array) { return array.to_vector(); }

TEST(Arrays, HaveShapesStridesAndElements) {
  const Array array = counted({2, 3, 4});
  EXPECT_EQ(array.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(array.strides(), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(array.rank(), 3);
  EXPECT_EQ(array.size(-1), 4);
  EXPECT_EQ(array.num_elements(), 24);
  EXPECT_EQ(array.dtype(), DType::float32);
  EXPECT_EQ(array.data<float>().size(), 24u);
  EXPECT_EQ(array.data<float>()[23], 23.0f);
  EXPECT_EQ(Array({5.0f}, {}).item(), 5.0f);
  EXPECT_TRUE(Array().is_empty());
  EXPECT_FALSE(array.is_empty());
}

TEST(Arrays, ViewsShareElements) {
  const Array array = counted({3, 4});
  const float* first = array.data<float>().data();
  const Array row = array[1];
  EXPECT_EQ(row.shape(), (Shape{4}));
  EXPECT_EQ(row.data<float>().data(), first + 4);
  const Array tail = slice(array, {.axis = 0, .begin = 1});
  EXPECT_EQ(tail.data<float>().data(), first + 4);
  const Array reshaped = reshape(array, {2, 6}), itself = array.contiguous();
  EXPECT_EQ(reshaped.data<float>().data(), first);
  EXPECT_EQ(itself.data<float>().data(), first);
  const Array turned = transpose(array);
  EXPECT_EQ(turned.strides(), (std::vector<int64_t>{1, 4}));
  EXPECT_FALSE(turned.is_contiguous());
  EXPECT_EQ(turned[2].strides(), (std::vector<int64_t>{4}));  // a row of a view is one too
  EXPECT_EQ(read(turned[2]), (std::vector<float>{2, 6, 10}));
  const Array copy = turned.contiguous();
  EXPECT_EQ(copy.strides(), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(read(copy), read(turned));
  const Array wide = broadcast_to(row, {2, 4});
  EXPECT_EQ(wide.strides(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(read(wide), (std::vector<float>{4, 5, 6, 7, 4, 5, 6, 7}));
  const Array back = slice(array, {.axis = 1, .begin = 3, .step = -2});
  EXPECT_EQ(back.strides(), (std::vector<int64_t>{4, -2}));
  EXPECT_EQ(read(back), (std::vector<float>{3, 1, 7, 5, 11, 9}));
  EXPECT_EQ(read(slice(array[0], {.begin = 3, .end = 1, .step = -1})), (std::vector<float>{3, 2}));
}

TEST(Arrays, ViewsOutliveTheirArray) {
  Array row;
  {
    const Array array = counted({3, 4});
    row = array[2];
  }
  EXPECT_EQ(read(row), (std::vector<float>{8, 9, 10, 11}));
}

TEST(Arrays, RowsAndElementsAreRanges) {
  const Array turned = transpose(counted({2, 3}));
  std::vector<float> sums;
  for (const Array& row : turned) sums.push_back(sum(row).item());
  EXPECT_EQ(sums, (std::vector<float>{3, 5, 7}));
  std::vector<float> values;
  for (const float value : turned.elements()) values.push_back(value);
  EXPECT_EQ(values, (std::vector<float>{0, 3, 1, 4, 2, 5}));
  const auto elements = counted({2, 2}).elements();  // of an array that is gone
  EXPECT_EQ(std::accumulate(elements.begin(), std::next(elements.begin(), 4), 0.0f), 6.0f);
  EXPECT_EQ(counted({0, 3}).elements().size(), 0);
  for (const float value : counted({0, 3}).elements()) FAIL() << value;
  for (const Array& row : counted({0, 3})) FAIL() << row.rank();
  EXPECT_EQ(read(Array({7}, {})), std::vector<float>{7});
}

TEST(Arrays, EveryDTypeIsReadAsItsOwn) {
  const Array half({1.0f, -2.0f}, {2}, DType::float16);
  EXPECT_EQ(half.data<uint16_t>()[1], 0xC000);
  EXPECT_EQ(read(half), (std::vector<float>{1.0f, -2.0f}));
  const Array brain({1.0f}, {1}, DType::bfloat16), chosen = mask({0, 7}, {2});
  EXPECT_EQ(brain.data<uint16_t>()[0], 0x3F80);
  EXPECT_EQ(chosen.data<int8_t>()[1], 1);
  const Array ids = integers({1 << 30, -5}, {2});
  EXPECT_EQ(ids.dtype(), DType::int32);
  EXPECT_EQ(ids.data<int32_t>()[0], 1 << 30);
  EXPECT_EQ(ids.to_vector<int32_t>(), (std::vector<int32_t>{1 << 30, -5}));
  EXPECT_EQ(reshape(ids, {2, 1})[1].to_vector<int32_t>(), std::vector<int32_t>{-5});
}

TEST(Arrays, NewOnes) {
  EXPECT_EQ(read(zeros({2})), (std::vector<float>{0, 0}));
  EXPECT_EQ(read(ones({2}, DType::bfloat16)), (std::vector<float>{1, 1}));
  EXPECT_EQ(ones({2}, DType::int32).to_vector<int32_t>(), (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(full({1}, 3.0f, DType::mask).to_vector<int8_t>(), std::vector<int8_t>{1});
  EXPECT_EQ(zeros({}).num_elements(), 1);
}

TEST(Arrays, CompoundAssignmentReplacesTheArrayAlone) {
  Array a = ones({2});
  const Array before = a;
  a += ones({2}) * 2.0f;
  a *= a;
  a -= ones({2});
  a /= full({2}, 4.0f);
  EXPECT_EQ(read(a), (std::vector<float>{2, 2}));
  EXPECT_EQ(read(before), (std::vector<float>{1, 1}));
}

TEST(RandomArrays, AreAFunctionOfTheirKey) {
  const RandomKey key{.seed = 5};
  const Array whole = uniform({8}, key, -1.0f, 1.0f);
  EXPECT_EQ(read(uniform({8}, key, -1.0f, 1.0f)), read(whole));
  EXPECT_NE(read(uniform({8}, {.seed = 6}, -1.0f, 1.0f)), read(whole));
  const Array first = uniform({4}, key, -1.0f, 1.0f);
  const Array second = uniform({4}, key.after(first), -1.0f, 1.0f);
  EXPECT_EQ(read(concatenate({first, second})), read(whole));
  for (const float value : whole.elements()) {
    EXPECT_GE(value, -1.0f);
    EXPECT_LT(value, 1.0f);
  }
}

TEST(RandomArrays, HaveTheirMoments) {
  const Array x = normal({20000}, {.seed = 1}, 2.0f, 3.0f);
  const float average = mean(x).item();
  EXPECT_NEAR(average, 2.0f, 0.1f);
  EXPECT_NEAR(std::sqrt(mean((x - average) * (x - average)).item()), 3.0f, 0.1f);
  const Array he = kaiming_normal({100, 50}, {.seed = 2});
  EXPECT_NEAR(std::sqrt(mean(he * he).item()), std::sqrt(2.0f / 50), 0.01f);
  const Array logits = broadcast_to(log(Array({0.25f, 0.75f}, {2})), {4000, 2});
  int64_t ones_drawn = 0;
  for (const int32_t drawn : categorical(logits, {.seed = 3}).elements<int32_t>()) {
    ones_drawn += drawn;
  }
  EXPECT_NEAR(static_cast<double>(ones_drawn) / 4000, 0.75, 0.03);
}

}  // namespace
}  // namespace paceline::arrays
