// Cross-entropy with its gradient, a block for each row of logits, and the gradient of an
// embedding.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/row_results.h"

namespace paceline::cuda {

struct CrossEntropyGradient {
  static constexpr std::string_view kName = "cross_entropy_gradient";
  static constexpr uint32_t kThreads = kRowThreads;
  struct Params {
    Rows logits;  // becomes their gradient
    int64_t width = 0;
    const int32_t* targets = nullptr;
    const float* weights = nullptr;
    float* losses = nullptr;
  };
  using Shared = WarpPartials;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    float* const row = p.logits.row(block_index().x);
    const float weight = p.weights[block_index().x];
    if (weight == 0.0f) {
      for (int64_t i = thread_index(); i < p.width; i += kThreads) row[i] = 0.0f;
      if (thread_index() == 0) p.losses[block_index().x] = 0.0f;
      return;
    }
    const int32_t target = p.targets[block_index().x];
    const float logit = row[target];  // before the row is overwritten
    const float top = row_maximum(row, p.width, shared);
    const float log_sum = log_sum_exp_below(top, row, p.width, shared);
    if (thread_index() == 0) p.losses[block_index().x] = log_sum - logit;
    for_each_loaded_span(row, p.width, [&](const ResultElements& elements, int64_t first) {
      ResultElements::for_each(first, p.width, [&](int k, int64_t i) {
        const float share = exponential(elements.of[k] - log_sum);
        row[i] = (i == target ? share - 1.0f : share) * weight;
      });
    });
  }
};

// dtable[ids[r]] += dout[r] * scale, rows in ascending order: columns along y of the grid.
struct EmbeddingGradient {
  static constexpr std::string_view kName = "embedding_gradient";
  static constexpr uint32_t kThreads = kElementThreads;
  struct Params {
    ConstRows dout;
    const int32_t* ids = nullptr;
    int64_t num_rows = 0;
    int64_t width = 0;
    float scale = 1.0f;
    Rows dtable;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    for_each_column(p.width, [&p](int64_t i) {
      for (int64_t row = 0; row < p.num_rows; ++row) {
        float& sum = p.dtable.row(p.ids[row])[i];
        sum = fused_multiply_add(p.dout.row(row)[i], p.scale, sum);
      }
    });
  }
};

}  // namespace paceline::cuda
