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
  };
  using Shared = WarpPartials;

  PL_DEVICE static float inverse(const Params& p, float squares, float eps) {
    return inverse_root(squares / static_cast<float>(p.width), eps);
  }

  // A thread reads and writes the same elements in each pass.
  PL_DEVICE static void run(const Params& p, Shared& shared) {
    float* const residual = p.residual.row(block_index().x);
    const float* const branch = p.branch.row(block_index().x);
    float* const out = p.out.row(block_index().x);
    float branch_inverse = 0.0f;
    if (p.branch_weight != nullptr) {
      const float squares =
          sum_over_row(p.width, shared, [branch](int64_t i) { return branch[i] * branch[i]; });
      branch_inverse = inverse(p, squares, p.branch_eps);
    }
    const float squares = sum_over_row(p.width, shared, [&](int64_t i) {
      float added = branch[i];
      if (p.branch_weight != nullptr) added = added * branch_inverse * p.branch_weight[i];
      const float sum = residual[i] + added;
      residual[i] = sum;
      return sum * sum;
    });
    const float factor = inverse(p, squares, p.eps);
    for (int64_t i = thread_index(); i < p.width; i += kThreads) {
      out[i] = residual[i] * factor * p.weight[i];
    }
  }
};

}  // namespace paceline::cuda
