#include "weights/symmetric_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "weights/rounding.h"

namespace paceline {
namespace {

constexpr int kZeroPoint = 128;
constexpr float kLargestStep = 127;

// The scale; not finite when an element isn't.
float quantize_group(std::span<const float> group, uint8_t* codes) {
  float largest = 0, sum = 0;
  for (const float value : group) {
    const float magnitude = std::abs(value);
    largest = std::max(largest, magnitude);
    sum += magnitude * 0x1p-8f;
  }
  if (!std::isfinite(sum)) return sum;
  const float scale = largest / kLargestStep;
  for (const float value : group) {
    const float step = scale > 0 ? std::clamp(value / scale, -kLargestStep, kLargestStep) : 0.0f;
    *codes++ = static_cast<uint8_t>(static_cast<int>(round_small(step)) + kZeroPoint);
  }
  return scale;
}

}  // namespace

SymmetricRows::SymmetricRows(const Tensor& matrix, int64_t group_size, std::string_view where,
                             Memory& memory, ThreadPool& threads)
    : group_size_(group_size),
      value_dtype_(matrix.dtype()),
      codes_(allocate_tensor(memory, DType::u32, {matrix.size(0), matrix.size(1) / 4})),
      scales_(allocate_tensor(memory, DType::f32, {matrix.size(0), matrix.size(1) / group_size})) {
  constexpr int64_t kRowsAtOnce = 16;
  PL_CHECK(matrix.size(1) % group_size == 0, "rows of whole groups");
  std::atomic<int64_t> refused_row = -1;
  threads.parallel_for(num_rows(), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    std::vector<float> values(static_cast<size_t>(matrix.size(1)));
    for (int64_t row = begin; row < end; ++row) {
      with_float_dtype(matrix.dtype(), [&]<class T>() {
        const T* const from = matrix.row<T>(row);
        for (size_t i = 0; i < values.size(); ++i) values[i] = to_float(from[i]);
      });
      auto* codes = reinterpret_cast<uint8_t*>(codes_.view.row<uint32_t>(row));
      float* scale = scales_.view.row<float>(row);
      for (size_t i = 0; i < values.size(); i += static_cast<size_t>(group_size)) {
        *scale = quantize_group(std::span(values).subspan(i, static_cast<size_t>(group_size)),
                                codes + i);
        if (!std::isfinite(*scale++)) refused_row = row;
      }
    }
  });
  if (refused_row >= 0) throw_not_finite(where, refused_row);
}

std::span<const uint8_t> SymmetricRows::codes_of(int64_t row) const {
  return {reinterpret_cast<const uint8_t*>(codes_.view.row<uint32_t>(row)),
          static_cast<size_t>(row_length())};
}

void SymmetricRows::read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                               std::span<float> offsets) const {
  std::ranges::copy(codes_of(row), codes.begin());
  const float* scale = scales_.view.row<float>(row);
  for (size_t group = 0; group < scales.size(); ++group) {
    scales[group] = scale[group];
    offsets[group] = -static_cast<float>(kZeroPoint) * scale[group];
  }
}

void SymmetricRows::read_values(int64_t row, std::span<float> values) const {
  const auto codes = codes_of(row);
  const float* const scale = scales_.view.row<float>(row);
  with_float_dtype(value_dtype_, [&]<class T>() {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto step = static_cast<float>(static_cast<int>(codes[i]) - kZeroPoint);
      const float value = scale[i / static_cast<size_t>(group_size_)] * step;
      values[i] = to_float(from_float<T>(value));
    }
  });
}

std::vector<std::span<const std::byte>> SymmetricRows::stored_bytes() const {
  const auto bytes = [](const Tensor& tensor) {
    return std::span(static_cast<const std::byte*>(tensor.raw()), tensor.size_bytes());
  };
  return {bytes(codes_.view), bytes(scales_.view)};
}

}  // namespace paceline
