// RMS norm and layer norm: a block for each row, or for each head of a row.
#pragma once

#include "kernels/cuda/code/input_panels.h"
#include "kernels/cuda/code/row_elements.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

// Rows of a norm that it writes rounded too, for products of many rows. Blocks behind the last row
// make zeros.
struct NormedPanels {
  InputPanels panels;  // may be none
  int64_t num_rows = 0;

  PL_DEVICE bool is_behind_last() const {
    return panels.first != nullptr && block_index().x >= num_rows;
  }
  PL_DEVICE void clear_row() const { panels.clear_row(block_index().x, 0, kRowThreads); }
  PL_DEVICE void store(int64_t k, float value) const {
    if (panels.first != nullptr) panels.store(block_index().x, k, value);
  }
  PL_DEVICE void clear_behind(int64_t width) const {
    if (panels.first != nullptr) panels.clear_row(block_index().x, width, kRowThreads);
  }
};

struct NormParams {
  Heads x;
  Heads out;  // may be x
  const float* weight = nullptr;
  const float* bias = nullptr;  // of layer norms; may be null
  int64_t width = 0;
  float eps = 0.0f;
  NormedPanels packed;  // of RmsNorm
};

PL_DEVICE float inverse_root(float mean_square, float eps) {
  return 1.0f / square_root(mean_square + eps);
}

// Calls body(first) for the spans of a row, in ascending order.
template <class Body>
PL_DEVICE void for_each_span(int64_t width, Body&& body) {
  for (int64_t first = 0; first < width; first += NormElements::kSpan) body(first);
}
// Whether the registers of a block hold a row: then what was loaded for a pass is there for the
// next.
PL_DEVICE bool is_one_span(int64_t width) { return width <= NormElements::kSpan; }

// The sum over a row: each thread adds term(k) of its own elements in ascending order, which load()
// has loaded.
template <class Load, class Term>
PL_DEVICE float sum_over_row(int64_t width, WarpPartials& partials, Load&& load, Term&& term) {
  float sum = 0.0f;
  for_each_span(width, [&](int64_t first) {
    load(first);
    NormElements::for_each(first, width, [&](int k, int64_t) { sum = sum + term(k); });
  });
  return reduce_block<Sum>(sum, partials);
}

struct RmsNorm {
  static constexpr std::string_view kName = "rms_norm";
  static constexpr uint32_t kThreads = kRowThreads;
  using Params = NormParams;
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    if (p.packed.is_behind_last()) return p.packed.clear_row();
    const float* const row = p.x.head(block_index().x);
    float* const out = p.out.head(block_index().x);
    NormElements x, weight;
    const auto load = [&](int64_t first) {
      x.load(row, first, p.width);
      weight.load(p.weight, first, p.width);
    };
    const float squares =
        sum_over_row(p.width, shared, load, [&](int k) { return x.of[k] * x.of[k]; });
    const float inverse = inverse_root(squares / static_cast<float>(p.width), p.eps);
    for_each_span(p.width, [&](int64_t first) {
      if (!is_one_span(p.width)) load(first);
      NormElements::for_each(first, p.width, [&](int k, int64_t i) {
        const float normed = x.of[k] * inverse * weight.of[k];
        out[i] = normed;
        p.packed.store(i, normed);
      });
    });
    p.packed.clear_behind(p.width);
  }
};

struct LayerNorm {
  static constexpr std::string_view kName = "layer_norm";
  static constexpr uint32_t kThreads = kRowThreads;
  using Params = NormParams;
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const float* const row = p.x.head(block_index().x);
    float* const out = p.out.head(block_index().x);
    const bool is_kept = is_one_span(p.width);
    NormElements x, weight, bias;
    const auto load_x = [&](int64_t first) { x.load(row, first, p.width); };
    const auto load_weights = [&](int64_t first) {
      weight.load(p.weight, first, p.width);
      if (p.bias != nullptr) bias.load(p.bias, first, p.width);
    };
    const auto count = static_cast<float>(p.width);
    if (is_kept) load_weights(0);
    const float mean =
        sum_over_row(p.width, shared, load_x, [&](int k) { return x.of[k]; }) / count;
    const auto load_again = [&](int64_t first) {
      if (!is_kept) load_x(first);
    };
    const float squares = sum_over_row(p.width, shared, load_again,
                                       [&](int k) { return (x.of[k] - mean) * (x.of[k] - mean); });
    const float inverse = inverse_root(squares / count, p.eps);
    for_each_span(p.width, [&](int64_t first) {
      load_again(first);
      if (!is_kept) load_weights(first);
      NormElements::for_each(first, p.width, [&](int k, int64_t i) {
        const float normed = (x.of[k] - mean) * inverse * weight.of[k];
        out[i] = p.bias != nullptr ? normed + bias.of[k] : normed;
      });
    });
  }
};

}  // namespace paceline::cuda
