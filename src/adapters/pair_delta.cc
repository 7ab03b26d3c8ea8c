#include "adapters/pair_delta.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace paceline {
namespace {

// Columns whose sums are computed at a time; a constant, so that they are computed in vectors.
constexpr size_t kPiece = 256;

// A block of columns of A, row by row.
struct Columns {
  const float* a;
  size_t stride;  // of A's rows
  size_t count;   // at most kPiece
};

// values += scale * b A. Inlined with a constant count for whole pieces.
inline void add_product(std::span<const float> b, float scale, const Columns& columns,
                        float* values) {
  std::array<float, kPiece> sums;
  std::fill_n(sums.begin(), columns.count, 0.0f);
  for (size_t r = 0; r < b.size(); ++r) {
    const float* const a = columns.a + r * columns.stride;
    for (size_t i = 0; i < columns.count; ++i) sums[i] += b[r] * a[i];
  }
  for (size_t i = 0; i < columns.count; ++i) values[i] += scale * sums[i];
}

std::vector<float> as_floats(const Tensor& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.num_elements()));
  copy_elements(matrix, Tensor(values.data(), DType::f32, matrix.shape()));
  return values;
}

}  // namespace

PairDelta::PairDelta(const LoraPair& pair)
    : rank_(pair.rank()),
      in_(pair.in()),
      scale_(pair.scale),
      a_(as_floats(pair.a.view)),
      b_(as_floats(pair.b.view)) {}

void PairDelta::add_to_row(int64_t row, std::span<float> values) const {
  const auto length = static_cast<size_t>(in_), rank = static_cast<size_t>(rank_);
  PL_CHECK(values.size() == length, "a row of the pair's matrix");
  const std::span<const float> b(b_.data() + static_cast<size_t>(row) * rank, rank);
  size_t begin = 0;
  for (; begin + kPiece <= length; begin += kPiece) {
    add_product(b, scale_, {.a = a_.data() + begin, .stride = length, .count = kPiece},
                values.data() + begin);
  }
  add_product(b, scale_, {.a = a_.data() + begin, .stride = length, .count = length - begin},
              values.data() + begin);
}

}  // namespace paceline
