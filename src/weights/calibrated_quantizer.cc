#include "weights/calibrated_quantizer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "weights/group_fit.h"
#include "weights/packed_codes.h"
#include "weights/rounding.h"

namespace paceline {
namespace {

constexpr double kDamping = 0.01;

// A square matrix of doubles.
struct Square {
  int64_t size;
  std::vector<double> elements;

  explicit Square(int64_t n) : size(n), elements(static_cast<size_t>(n * n)) {}
  double* row(int64_t i) { return elements.data() + i * size; }
};

double dot(const double* a, const double* b, int64_t count) {
  constexpr int64_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<size_t>(lane)] += a[i + lane] * b[i + lane];
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Replaces a positive definite matrix by the upper triangle R with R R^T equal to it, from the last
// column to the first. False when it isn't positive definite.
bool factorise(Square& matrix, ThreadPool& threads) {
  constexpr int64_t kRowsAtOnce = 32;
  const int64_t n = matrix.size;
  for (int64_t j = n - 1; j >= 0; --j) {
    double* const last = matrix.row(j);
    const int64_t behind = n - 1 - j;
    const double square = last[j] - dot(last + j + 1, last + j + 1, behind);
    if (!(square > 0) || !std::isfinite(square)) return false;
    last[j] = std::sqrt(square);
    threads.parallel_for(j, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        double* const row = matrix.row(i);
        row[j] = (row[j] - dot(row + j + 1, last + j + 1, behind)) / last[j];
      }
    });
  }
  return true;
}

// The inverse of an upper triangle, columns [begin, end).
void invert_columns(Square& triangle, int64_t begin, int64_t end, Square& inverse) {
  for (int64_t i = end - 1; i >= 0; --i) {
    const double* const row = triangle.row(i);
    double* const out = inverse.row(i);
    for (int64_t k = i + 1; k < end; ++k) {
      const double factor = row[k];
      const double* const other = inverse.row(k);
      for (int64_t j = std::max(begin, k); j < end; ++j) out[j] -= factor * other[j];
    }
    if (i >= begin) out[i] += 1.0;
    for (int64_t j = std::max(begin, i); j < end; ++j) out[j] /= row[i];
  }
}

// Some rows of a matrix, which share the factors that they read.
class RowChunk {
 public:
  RowChunk(const Tensor& matrix, int64_t first, int64_t count, AffineFormat format)
      : first_(first),
        count_(count),
        length_(matrix.size(1)),
        format_(format),
        left_(static_cast<size_t>(count * length_)),
        codes_(left_.size()),
        groups_(static_cast<size_t>(count)) {
    with_float_dtype(matrix.dtype(), [&]<class T>() {
      for (int64_t i = 0; i < count; ++i) {
        const T* const from = matrix.row<T>(first + i);
        for (int64_t j = 0; j < length_; ++j) row(i)[j] = to_float(from[j]);
      }
    });
  }

  // The first row that isn't finite; nothing: all are.
  std::optional<int64_t> find_not_finite() const {
    const auto at = std::ranges::find_if(left_, [](float x) { return !std::isfinite(x); });
    if (at == left_.end()) return std::nullopt;
    return first_ + (at - left_.begin()) / length_;
  }

  // False when the range of a group exceeds the type of the scales.
  bool quantize(const ErrorFeedback& feedback, const AffineTensors& out) {
    for (int64_t i = 0; i < length_; ++i) {
      if (i % format_.group_size == 0) fit_groups(feedback.importance(), i, out);
      const std::span<const float> factors = feedback.row(i);
      for (int64_t r = 0; r < count_; ++r) round_weight(r, i, factors);
    }
    for (int64_t r = 0; r < count_; ++r) {
      pack_codes(
          std::span(codes_).subspan(static_cast<size_t>(r * length_), static_cast<size_t>(length_)),
          format_.bits,
          {out.words.row<uint32_t>(first_ + r), static_cast<size_t>(out.words.size(1))});
    }
    return is_finite_;
  }

 private:
  struct Group {
    float scale = 0, offset = 0;
  };

  float* row(int64_t r) { return left_.data() + r * length_; }

  // Scales and offsets of the group that begins with weight i, as they are stored.
  void fit_groups(std::span<const float> importance, int64_t i, const AffineTensors& out) {
    const auto size = static_cast<size_t>(format_.group_size);
    const std::span<const float> weights = importance.subspan(static_cast<size_t>(i), size);
    const int64_t group = i / format_.group_size;
    for (int64_t r = 0; r < count_; ++r) {
      const GroupFit fit =
          fit_range({row(r) + i, size}, weights, (1 << format_.bits) - 1, OffsetSign::any);
      with_float_dtype(out.scales.dtype(), [&]<class T>() {
        T& scale = out.scales.row<T>(first_ + r)[group];
        T& bias = out.biases.row<T>(first_ + r)[group];
        scale = from_float<T>(fit.scale);
        bias = from_float<T>(fit.offset);
        groups_[static_cast<size_t>(r)] = {to_float(scale), to_float(bias)};
        is_finite_ &= std::isfinite(to_float(scale)) && std::isfinite(to_float(bias));
      });
    }
  }

  void round_weight(int64_t r, int64_t i, std::span<const float> factors) {
    const auto [scale, offset] = groups_[static_cast<size_t>(r)];
    float* const weights = row(r) + i;
    const int code = nearest_code(weights[0] - offset, scale, 0, (1 << format_.bits) - 1);
    codes_[static_cast<size_t>(r * length_ + i)] = static_cast<uint8_t>(code);
    const float error = (weights[0] - (scale * static_cast<float>(code) + offset)) / factors[0];
    for (size_t j = 1; j < factors.size(); ++j) weights[j] -= error * factors[j];
  }

  int64_t first_, count_, length_;
  AffineFormat format_;
  std::vector<float> left_;     // [count, length]: the weights less what was made up for
  std::vector<uint8_t> codes_;  // [count, length]
  std::vector<Group> groups_;   // of each row, the current one
  bool is_finite_ = true;
};

}  // namespace

std::vector<float> input_importance(const Tensor& moments) {
  const int64_t length = moments.size(0);
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) sum += moments.row<float>(i)[i];
  const double mean = sum / static_cast<double>(length);
  std::vector<float> importance;
  for (int64_t i = 0; i < length; ++i) {
    const double square = mean > 0 ? moments.row<float>(i)[i] / mean : 1.0;
    importance.push_back(static_cast<float>(square + kDamping));
  }
  return importance;
}

ErrorFeedback::ErrorFeedback(const Tensor& moments, std::string_view where, ThreadPool& threads)
    : length_(moments.size(0)), importance_(input_importance(moments)) {
  constexpr int64_t kColumnsAtOnce = 64;
  PL_CHECK(moments.rank() == 2 && moments.size(1) == length_, "square moments");
  Square matrix(length_);
  double sum = 0;
  for (int64_t i = 0; i < length_; ++i) {
    const float* const from = moments.row<float>(i);
    for (int64_t j = 0; j < length_; ++j) matrix.row(i)[j] = from[j];
    sum += from[i];
  }
  // Inputs that are never used leave a matrix of zeros, for which any number will do.
  const double damping = sum > 0 ? kDamping * sum / static_cast<double>(length_) : 1.0;
  for (int64_t i = 0; i < length_; ++i) matrix.row(i)[i] += damping;
  if (!factorise(matrix, threads)) {
    throw error_of(ErrorCode::numerical,
                   "{}: the calibration's inputs aren't finite, expected finite numbers", where);
  }
  Square inverse(length_);
  threads.parallel_for(length_, kColumnsAtOnce, [&](int64_t begin, int64_t end, int) {
    invert_columns(matrix, begin, end, inverse);
  });
  factors_.assign(inverse.elements.begin(), inverse.elements.end());
}

CalibratedAffineRows::CalibratedAffineRows(const Tensor& matrix, const ErrorFeedback& feedback,
                                           AffineFormat format, std::string_view where,
                                           Memory& memory, ThreadPool& threads) {
  constexpr int64_t kRowsAtOnce = 16;
  PL_CHECK(matrix.rank() == 2 && matrix.size(1) % format.group_size == 0, "rows of whole groups");
  PL_CHECK(feedback.length() == matrix.size(1), "an input for each column");
  const int64_t rows = matrix.size(0), groups = matrix.size(1) / format.group_size;
  words_ = allocate_tensor(memory, DType::u32, {rows, matrix.size(1) * format.bits / 32});
  scales_ = allocate_tensor(memory, matrix.dtype(), {rows, groups});
  biases_ = allocate_tensor(memory, matrix.dtype(), {rows, groups});
  tensors_ = {.words = words_.view, .scales = scales_.view, .biases = biases_.view};
  std::atomic<int64_t> refused_row = -1;
  threads.parallel_for(rows, kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t first = begin; first < end; first += kRowsAtOnce) {
      RowChunk chunk(matrix, first, std::min(kRowsAtOnce, end - first), format);
      if (const auto row = chunk.find_not_finite()) {
        refused_row = *row;
      } else if (!chunk.quantize(feedback, tensors_)) {
        refused_row = first;
      }
    }
  });
  if (refused_row >= 0) throw_not_finite(where, refused_row);
}

}  // namespace paceline
