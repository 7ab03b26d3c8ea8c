#include "weights/affine_quantizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "weights/packed_codes.h"
#include "weights/rounding.h"

namespace paceline {
namespace {

constexpr float kSmallestScale = 1e-7f;

// Codes are computed with the unrounded scale, as in mlx. False when a number isn't finite.
bool quantize_group(std::span<const float> group, int bits, AffineScale& fitted,
                    std::span<uint8_t> codes) {
  float sum_of_magnitudes = 0;  // not finite when one of them isn't
  for (const float value : group) sum_of_magnitudes += std::abs(value) * 0x1p-8f;
  fitted = fit_affine(group, bits);
  if (!std::isfinite(sum_of_magnitudes) || !std::isfinite(fitted.scale)) return false;
  const auto largest = static_cast<float>((1 << bits) - 1);
  for (size_t i = 0; i < group.size(); ++i) {
    const float code = (group[i] - fitted.offset) / fitted.scale;
    codes[i] = static_cast<uint8_t>(round_small(std::clamp(code, 0.0f, largest)));
  }
  return true;
}

// Quantises rows, in one thread.
class RowQuantizer {
 public:
  RowQuantizer(const Tensor& matrix, AffineFormat format)
      : matrix_(matrix),
        format_(format),
        values_(static_cast<size_t>(matrix.size(1))),
        codes_(values_.size()) {}

  bool quantize(int64_t row, const AffineTensors& out) {
    const auto group_size = static_cast<size_t>(format_.group_size);
    bool finite = true;
    with_float_dtype(matrix_.dtype(), [&]<class T>() {
      const T* const from = matrix_.row<T>(row);
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = to_float(from[i]);
      T* scale = out.scales.row<T>(row);
      T* bias = out.biases.row<T>(row);
      for (size_t i = 0; i < values_.size(); i += group_size) {
        AffineScale fitted;
        finite &= quantize_group(std::span(values_).subspan(i, group_size), format_.bits, fitted,
                                 std::span(codes_).subspan(i, group_size));
        *scale++ = from_float<T>(fitted.scale);
        *bias++ = from_float<T>(fitted.offset);
      }
    });
    if (!finite) return false;
    pack_codes(codes_, format_.bits,
               {out.words.row<uint32_t>(row), static_cast<size_t>(out.words.size(1))});
    return true;
  }

 private:
  const Tensor& matrix_;
  AffineFormat format_;
  std::vector<float> values_;
  std::vector<uint8_t> codes_;
};

}  // namespace

AffineScale fit_affine(std::span<const float> group, int bits) {
  const auto [least, most] = std::ranges::minmax(group);
  const auto steps = static_cast<float>((1 << bits) - 1);
  const bool from_least = std::abs(least) > std::abs(most);
  const float edge = from_least ? least : most;
  const float even = std::max((most - least) / steps, kSmallestScale);
  const float scale = from_least ? even : -even;
  const float steps_to_zero = std::rint(edge / scale);
  if (steps_to_zero == 0) return {.scale = scale, .offset = 0};
  return {.scale = edge / steps_to_zero, .offset = edge};
}

OwnedAffineRows::OwnedAffineRows(const Tensor& matrix, AffineFormat format, std::string_view where,
                                 Memory& memory, ThreadPool& threads) {
  constexpr int64_t kRowsAtOnce = 16;
  PL_CHECK(matrix.rank() == 2 && matrix.size(1) % format.group_size == 0, "rows of whole groups");
  const int64_t rows = matrix.size(0), groups = matrix.size(1) / format.group_size;
  words_ = allocate_tensor(memory, DType::u32, {rows, matrix.size(1) * format.bits / 32});
  scales_ = allocate_tensor(memory, matrix.dtype(), {rows, groups});
  biases_ = allocate_tensor(memory, matrix.dtype(), {rows, groups});
  tensors_ = {.words = words_.view, .scales = scales_.view, .biases = biases_.view};
  std::atomic<int64_t> refused_row = -1;
  threads.parallel_for(rows, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    RowQuantizer quantizer(matrix, format);
    for (int64_t row = begin; row < end; ++row) {
      if (!quantizer.quantize(row, tensors_)) refused_row = row;
    }
  });
  if (refused_row >= 0) throw_not_finite(where, refused_row);
}

}  // namespace paceline
