// Gradients of RMS norm and layer norm: a block for each row, or for each head of a row.
#pragma once

#include "kernels/cuda/code/norms.h"
#include "kernels/cuda/code/weight_gradient.h"

namespace paceline::cuda {

// With z = (x - mean) * scale a norm is z * weight; the mean of an RMS norm is 0.
struct NormNumbers {
  float mean;
  float scale;
};

struct NormGradientParams {
  Heads x;
  Heads dy;
  Heads dx;  // may be x or dy
  const float* weight = nullptr;
  int64_t width = 0;
  float eps = 0.0f;
  uint32_t is_layer_norm = 0;
  NormNumbers* numbers = nullptr;  // of each row, of RowNormNumbers
};

// Every thread gets it; all kRowThreads must call it.
template <class Load>
PL_DEVICE NormNumbers norm_numbers(const NormGradientParams& p, const NormElements& x,
                                   WarpPartials& shared, Load&& load) {
  const auto count = static_cast<float>(p.width);
  float mean = 0.0f;
  if (p.is_layer_norm != 0) {
    mean = sum_over_row(p.width, shared, load, [&](int k) { return x.of[k]; }) / count;
  }
  const float squares = sum_over_row(p.width, shared, load,
                                     [&](int k) { return (x.of[k] - mean) * (x.of[k] - mean); });
  return {mean, inverse_root(squares / count, p.eps)};
}

struct RowNormNumbers {
  static constexpr std::string_view kName = "row_norm_numbers";
  static constexpr uint32_t kThreads = kRowThreads;
  using Params = NormGradientParams;
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const float* const row = p.x.head(block_index().x);
    NormElements x;
    const NormNumbers numbers =
        norm_numbers(p, x, shared, [&](int64_t first) { x.load(row, first, p.width); });
    if (thread_index() == 0) p.numbers[block_index().x] = numbers;
  }
};

// With g = weight * dy: dx = scale * (g - mean(g) - z * mean(g * z)), mean(g) of layer norms alone.
struct NormInputGradient {
  static constexpr std::string_view kName = "norm_gradient";
  static constexpr uint32_t kThreads = kRowThreads;
  using Params = NormGradientParams;
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const float* const row = p.x.head(block_index().x);
    const float* const dy_row = p.dy.head(block_index().x);
    float* const out = p.dx.head(block_index().x);
    NormElements x, dy, weight;
    const auto load_x = [&](int64_t first) { x.load(row, first, p.width); };
    const auto load = [&](int64_t first) {
      load_x(first);
      dy.load(dy_row, first, p.width);
      weight.load(p.weight, first, p.width);
    };
    const NormNumbers norm = norm_numbers(p, x, shared, load_x);
    const auto count = static_cast<float>(p.width);
    const auto z = [&](int k) { return (x.of[k] - norm.mean) * norm.scale; };
    const auto g = [&](int k) { return weight.of[k] * dy.of[k]; };
    const float of_z =
        sum_over_row(p.width, shared, load, [&](int k) { return g(k) * z(k); }) / count;
    float of_one = 0.0f;
    if (p.is_layer_norm != 0) of_one = sum_over_row(p.width, shared, load, g) / count;
    for_each_span(p.width, [&](int64_t first) {
      if (!is_one_span(p.width)) load(first);
      NormElements::for_each(first, p.width, [&](int k, int64_t i) {
        out[i] = norm.scale * (g(k) - of_one - z(k) * of_z);
      });
    });
  }
};

// to += the sum of dy, or of dy * z, over rows and their heads. Segments of rows are summed from
// zero in ascending order, then added in ascending order: columns along y of the grid.
struct SumRows {
  static constexpr std::string_view kName = "sum_rows";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    Heads dy;
    Heads x;                               // of norms
    const NormNumbers* numbers = nullptr;  // null: the sum of dy
    int64_t num_rows = 0;                  // of heads
    int64_t width = 0;
    float* to = nullptr;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    for_each_column(p.width, [&p](int64_t i) {
      float total = p.to[i];
      for (int64_t begin = 0; begin < p.num_rows; begin += kSegmentRows) {
        const int64_t left = p.num_rows - begin;
        const int64_t end = begin + (left < kSegmentRows ? left : int64_t{kSegmentRows});
        float sum = 0.0f;
        for (int64_t row = begin; row < end; ++row) sum = sum + term(p, row, i);
        total = total + sum;
      }
      p.to[i] = total;
    });
  }

 private:
  PL_DEVICE static float term(const Params& p, int64_t row, int64_t i) {
    const float dy = p.dy.head(row)[i];
    if (p.numbers == nullptr) return dy;
    return dy * ((p.x.head(row)[i] - p.numbers[row].mean) * p.numbers[row].scale);
  }
};

}  // namespace paceline::cuda
