#include "autodiff/new_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autodiff/float_math.h"
#include "autodiff/lines.h"
#include "autodiff/shape_error.h"
#include "base/error.h"
#include "base/random.h"

namespace paceline::autodiff {
namespace {

constexpr double kTwoPi = 6.283185307179586;

Array filled(const Context& context, const Extents& shape, float value) {
  Array array(context, DType::f32, shape);
  float* elements = array.writable().elements<float>();
  std::fill(elements, elements + array.num_elements(), value);
  return array;
}

void check_count(std::string_view name, size_t found, const Array& array) {
  if (static_cast<int64_t>(found) == array.num_elements()) return;
  throw_shapes(name, {array}, fmt::format("{} values, found {}", array.num_elements(), found));
}

using Words = std::array<uint32_t, 4>;

// Fills an array with draw(words, i): element i of the four that words make.
template <class Draw>
Array drawn(const Context& context, const Extents& shape, RandomKey key, Draw draw) {
  Array array(context, DType::f32, shape);
  float* elements = array.writable().elements<float>();
  const int64_t count = array.num_elements();
  for_parts(context, static_cast<int64_t>(counters_of(count)), 64, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const Words words = philox4x32(key.seed, key.counter + static_cast<uint64_t>(group));
      const int64_t size = std::min<int64_t>(4, count - 4 * group);
      for (int64_t i = 0; i < size; ++i) {
        elements[4 * group + i] = draw(words, static_cast<size_t>(i));
      }
    }
  });
  return array;
}

// Elements 2 i and 2 i + 1 share two words: a radius and an angle.
double normal_draw(const Words& words, size_t i) {
  const size_t pair = i & ~size_t{1};
  const double share = (static_cast<double>(words[pair]) + 1.0) * 0x1.0p-32;  // (0, 1]
  const double radius = std::sqrt(-2.0 * double_log(share));
  const SinCos angle = sine_cosine(kTwoPi * static_cast<double>(words[pair + 1]) * 0x1.0p-32);
  return radius * (i == pair ? angle.cos : angle.sin);
}

}  // namespace

Array zeros(const Context& context, const Extents& shape, DType dtype) {
  return Array(context, dtype, shape);
}

Array ones(const Context& context, const Extents& shape, DType dtype) {
  return rounded_to(filled(context, shape, 1.0f), dtype);
}

Array from_values(const Context& context, std::span<const float> values, const Extents& shape,
                  DType dtype) {
  Array array(context, DType::f32, shape);
  check_count("from_values", values.size(), array);
  std::copy(values.begin(), values.end(), array.writable().elements<float>());
  return rounded_to(array, dtype);
}

Array from_integers(const Context& context, std::span<const int32_t> values, const Extents& shape) {
  Array array(context, DType::i32, shape);
  check_count("from_integers", values.size(), array);
  std::copy(values.begin(), values.end(), array.writable().elements<int32_t>());
  return array;
}

Array from_mask(const Context& context, std::span<const uint8_t> values, const Extents& shape) {
  Array array(context, DType::i8, shape);
  check_count("from_mask", values.size(), array);
  std::transform(values.begin(), values.end(), array.writable().elements<int8_t>(),
                 [](uint8_t value) { return static_cast<int8_t>(value != 0); });
  return array;
}

Array uniform(const Context& context, const Extents& shape, RandomKey key, float low, float high,
              DType dtype) {
  if (!(low < high) || !std::isfinite(low) || !std::isfinite(high)) {
    throw Error(ErrorCode::invalid,
                fmt::format("uniform: from {} to {}: expected finite bounds, the lower one first",
                            low, high));
  }
  const double width = double{high} - double{low};
  const float last = std::nextafter(high, low);
  const Array array = drawn(context, shape, key, [&](const Words& words, size_t i) {
    const double share = static_cast<double>(words[i] >> 8) * 0x1.0p-24;
    return std::min(static_cast<float>(double{low} + share * width), last);
  });
  return rounded_to(array, dtype);
}

Array normal(const Context& context, const Extents& shape, RandomKey key, float mean,
             float deviation, DType dtype) {
  const Array array = drawn(context, shape, key, [&](const Words& words, size_t i) {
    return static_cast<float>(double{mean} + double{deviation} * normal_draw(words, i));
  });
  return rounded_to(array, dtype);
}

Array kaiming_normal(const Context& context, const Extents& shape, RandomKey key, float gain,
                     DType dtype) {
  int64_t fan_in = shape.rank() < 2 ? 0 : 1;
  for (int i = 1; i < shape.rank(); ++i) fan_in *= shape[i];
  if (fan_in == 0) {
    throw Error(ErrorCode::invalid,
                fmt::format("kaiming_normal: {}: expected two dimensions or more, inputs in all "
                            "but the first",
                            to_string(shape)));
  }
  const double deviation = double{gain} / std::sqrt(static_cast<double>(fan_in));
  return normal(context, shape, key, 0.0f, static_cast<float>(deviation), dtype);
}

Array categorical(const Array& logits, RandomKey key) {
  check_float("categorical", logits);
  if (logits.rank() != 2 || logits.size(1) == 0) {
    throw_shapes("categorical", {logits}, "[rows, classes]");
  }
  Array values = logits;
  while (values.traced() != nullptr) values = Array(values.traced()->value);
  values = as_contiguous_f32(values);
  const int64_t num_classes = logits.size(1);
  Array result(logits.context(), DType::i32, {logits.size(0)});
  int32_t* chosen = result.writable().elements<int32_t>();
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const float* from = values.tensor().row<float>(row);
    const float most = *std::max_element(from, from + num_classes);
    double total = 0.0;
    for (int64_t i = 0; i < num_classes; ++i) total += double{float_exp(from[i] - most)};
    if (!std::isfinite(total)) {
      throw Error(ErrorCode::numerical,
                  fmt::format("categorical: row {}: expected logits with a finite maximum and no "
                              "NaN",
                              row));
    }
    // The first class whose sum exceeds the draw; rounding may leave none, then the last possible.
    double left = uniform_draw(key.seed, key.counter + static_cast<uint64_t>(row)) * total;
    for (int64_t i = 0; i < num_classes; ++i) {
      const auto weight = double{float_exp(from[i] - most)};
      if (weight > 0.0) chosen[row] = static_cast<int32_t>(i);
      if (left < weight) break;
      left -= weight;
    }
  }
  return result;
}

}  // namespace paceline::autodiff
