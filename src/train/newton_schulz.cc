#include "train/newton_schulz.h"

#include <array>
#include <cmath>
#include <vector>

#include "kernels/gradients.h"
#include "train/sum_of_squares.h"

namespace paceline {
namespace {

constexpr float kLinear = 3.4445f, kCubic = -4.7750f, kQuintic = 2.0315f;
constexpr int kIterations = 5;
constexpr double kLengthEpsilon = 1e-7;  // added to the length
constexpr int64_t kCombineGrain = 1 << 14;

// In double: rows are summed, then their sums.
double length_of(const Tensor& x, ThreadPool& threads) {
  std::vector<double> sums(static_cast<size_t>(x.size(0)));
  threads.parallel_for(x.size(0), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
    for (int64_t row = begin; row < end; ++row) {
      sums[static_cast<size_t>(row)] = sum_of_squares(x.row<float>(row), x.size(1));
    }
  });
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

// out = factor * x + other_factor * other, of contiguous tensors of one size.
struct Combination {
  float factor;
  const Tensor& x;
  float other_factor;
  const Tensor& other;
};

void combine(const Combination& of, ThreadPool& threads, const Tensor& out) {
  const float* const x = of.x.elements<float>();
  const float* const other = of.other.elements<float>();
  float* const to = out.elements<float>();
  threads.parallel_for(out.num_elements(), kCombineGrain,
                       [&](int64_t begin, int64_t end, int /*thread*/) {
                         for (int64_t i = begin; i < end; ++i)
                           to[i] = of.factor * x[i] + of.other_factor * other[i];
                       });
}

// A matrix that will be written.
OwnedTensor new_tensor(Backend& backend, const Extents& shape) {
  return allocate_tensor(backend.memory(), DType::f32, shape, Contents::undefined);
}

void copy_rows(const Tensor& from, ThreadPool& threads, const Tensor& to) {
  constexpr int64_t kRowsAtOnce = 32;
  threads.parallel_for(to.size(0), kRowsAtOnce, [&](int64_t begin, int64_t end, int /*thread*/) {
    copy_elements(from.slice(0, begin, end), to.slice(0, begin, end));
  });
}

// x [m, k] in place.
void iterate(Backend& backend, ThreadPool& threads, DType dtype, const Tensor& x) {
  const int64_t m = x.size(0);
  const OwnedTensor gram = new_tensor(backend, {m, m}), square = new_tensor(backend, {m, m});
  const OwnedTensor product = new_tensor(backend, x.shape());
  for (int step = 0; step < kIterations; ++step) {
    const PackedMatrix packed = backend.pack_matrix(std::array{x}, dtype);
    backend.matmul(x, packed, nullptr, gram.view);
    // The Gram matrix is its own transpose.
    backend.matmul(gram.view, backend.pack_matrix(std::array{gram.view}, dtype), nullptr,
                   square.view);
    combine({kCubic, gram.view, kQuintic, square.view}, threads, gram.view);
    backend.gradients().matmul_input_gradient(gram.view, packed, product.view);
    combine({kLinear, x, 1.0f, product.view}, threads, x);
  }
}

}  // namespace

void orthogonalise(Backend& backend, ThreadPool& threads, DType dtype, const Tensor& matrix) {
  const auto scale = static_cast<float>(1.0 / (length_of(matrix, threads) + kLengthEpsilon));
  combine({scale, matrix, 0.0f, matrix}, threads, matrix);
  if (matrix.size(0) <= matrix.size(1)) return iterate(backend, threads, dtype, matrix);
  const OwnedTensor wide = new_tensor(backend, {matrix.size(1), matrix.size(0)});
  copy_rows(matrix.transpose(0, 1), threads, wide.view);
  iterate(backend, threads, dtype, wide.view);
  copy_rows(wide.view.transpose(0, 1), threads, matrix);
}

}  // namespace paceline
