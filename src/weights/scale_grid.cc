#include "weights/scale_grid.h"

#include <cmath>

#include "base/error.h"
#include "tensor/float8.h"

namespace paceline {
namespace {

// Calls use(element(i)) with a function that reads element i as float32.
template <class Use>
decltype(auto) with_elements(const Tensor& values, Use&& use) {
  if (is_float8(values.dtype())) {
    const auto& table = float8_values(values.dtype());
    const auto* const bytes = static_cast<const uint8_t*>(values.raw());
    return use([&, bytes](int64_t i) { return table[bytes[i]]; });
  }
  if (values.dtype() == DType::i8) {
    const auto* const integers = values.elements<int8_t>();
    return use([integers](int64_t i) { return static_cast<float>(integers[i]); });
  }
  PL_CHECK(is_float(values.dtype()), "scales are floats");
  return with_float_dtype(values.dtype(), [&]<class T>() {
    const T* const elements = values.elements<T>();
    return use([elements](int64_t i) { return to_float(elements[i]); });
  });
}

}  // namespace

int64_t ScaleGrid::tiled_place(int64_t row, int64_t group) const {
  constexpr int64_t kRows = ScaleLayout::kTileRows, kGroups = ScaleLayout::kTileGroups;
  const int64_t tile = row / kRows * layout_.tiles_of_row + group / kGroups;
  const int64_t in_tile = row % 32 * (kRows / 32) + row % kRows / 32;
  return (tile * kRows + in_tile) * kGroups + group % kGroups;
}

void ScaleGrid::read_row(int64_t row, std::span<float> scales) const {
  if (layout_.tiles_of_row != 0) {
    with_elements(values_, [&](const auto& element) {
      int64_t group = 0;
      for (float& scale : scales) scale = element(tiled_place(row, group++)) * factor / divisor;
    });
    return;
  }
  const int64_t first = row / layout_.block_rows * layout_.row_stride;
  with_elements(values_, [&](const auto& element) {
    int64_t at = first;
    for (float& scale : scales) {
      scale = element(at) * factor / divisor;
      at += layout_.column_stride;
    }
  });
}

bool ScaleGrid::all_finite() const {
  return all_of([](float scale) { return std::isfinite(scale); });
}

bool ScaleGrid::all_of(bool (*holds)(float scale)) const {
  return with_elements(values_, [&](const auto& element) {
    for (int64_t i = 0; i < values_.num_elements(); ++i) {
      if (!holds(element(i) * factor / divisor)) return false;
    }
    return true;
  });
}

}  // namespace paceline
