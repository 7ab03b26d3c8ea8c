// Adds a branch to the residual and normalises the sum: a block for each row, with the bits of
// kernels for each step.
#pragma once

#include "kernels/cuda/code/norms.h"

namespace paceline::cuda {

struct AddRmsNorm {
  static constexpr std::string_view kName = "add_rms_norm";
  static constexpr uint32_t kThreads = kRowThreads;
  struct Params {
    Rows residual;  // becomes the sum
    ConstRows branch;
    Rows out;                              // may be the branch
    const float* branch_weight = nullptr;  // null: the branch is added as it is
    float branch_eps = 0.0f;
    const float* weight = nullptr;
    float eps = 0.0f;
    int64_t width = 0;
    NormedPanels packed;
  };
  using Shared = WarpPartials;

  PL_DEVICE static float inverse(const Params& p, float squares, float eps) {
    return inverse_root(squares / static_cast<float>(p.width), eps);
  }

  // A thread reads and writes the same elements in each pass.
  PL_DEVICE static void run(const Params& p, Shared& shared) {
    if (p.packed.is_behind_last()) return p.packed.clear_row();
    float* const residual_row = p.residual.row(block_index().x);
    const float* const branch_row = p.branch.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    const bool is_kept = is_one_span(p.width);
    NormElements residual, branch, branch_weight, weight;
    const auto load = [&](int64_t first) {
      residual.load(residual_row, first, p.width);
      branch.load(branch_row, first, p.width);
      weight.load(p.weight, first, p.width);
      if (p.branch_weight != nullptr) branch_weight.load(p.branch_weight, first, p.width);
    };
    const auto load_again = [&](int64_t first) {
      if (!is_kept) load(first);
    };
    if (is_kept) load(0);
    float branch_inverse = 0.0f;
    if (p.branch_weight != nullptr) {
      const float squares = sum_over_row(p.width, shared, load_again,
                                         [&](int k) { return branch.of[k] * branch.of[k]; });
      branch_inverse = inverse(p, squares, p.branch_eps);
    }
    float squares = 0.0f;
    for_each_span(p.width, [&](int64_t first) {
      load_again(first);
      NormElements::for_each(first, p.width, [&](int k, int64_t i) {
        float added = branch.of[k];
        if (p.branch_weight != nullptr) added = added * branch_inverse * branch_weight.of[k];
        const float sum = residual.of[k] + added;
        residual.of[k] = sum;
        residual_row[i] = sum;
        squares = squares + sum * sum;
      });
    });
    const float factor = inverse(p, reduce_block<Sum>(squares, shared), p.eps);
    for_each_span(p.width, [&](int64_t first) {
      load_again(first);
      NormElements::for_each(first, p.width, [&](int k, int64_t i) {
        const float normed = residual.of[k] * factor * weight.of[k];
        out[i] = normed;
        p.packed.store(i, normed);
      });
    });
    p.packed.clear_behind(p.width);
  }
};

}  // namespace paceline::cuda
