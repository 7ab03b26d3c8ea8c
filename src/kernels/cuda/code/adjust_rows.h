// Masks, penalties and biases: the logits that a row draws from, beside the model's own.
#pragma once

#include "kernels/cuda/code/block_reduce.h"
#include "kernels/cuda/code/draw_row.h"
#include "kernels/cuda/code/elementwise.h"

namespace paceline::cuda {

struct AdjustParams {
  const DrawRow* rows = nullptr;
  ConstRows logits;
  Rows adjusted;  // written for rows that change their logits
  int64_t width = 0;
};

// Copies the logits that may be drawn, and -inf for the others. Few tokens are forbidden.
struct MaskRows {
  static constexpr std::string_view kName = "mask_rows";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = AdjustParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const DrawRow& row = p.rows[block_index().x];
    if (!changes_logits(row)) return;
    const float* const logits = p.logits.row(block_index().x);
    float* const adjusted = p.adjusted.row(block_index().x);
    const uint64_t* const allowed = row.allowed;
    const int64_t num_words = row.num_allowed_words;
    const uint32_t num_forbidden = forbids(row) ? row.num_forbidden : 0;
    for_each_column(p.width, [=, &row](int64_t i) {
      const uint64_t word = i / 64 < num_words ? allowed[i / 64] : 0;
      const bool is_allowed = num_words == 0 || (word >> i % 64 & 1u) != 0;
      float logit = is_allowed ? logits[i] : -kInfinity;
      for (uint32_t k = 0; k < num_forbidden; ++k) {
        if (row.forbidden[k] == i) logit = logit - kInfinity;
      }
      adjusted[i] = logit;
    });
  }
};

// In this order: the repetition penalty divides positive and multiplies other logits, the frequency
// penalty times the count and the presence penalty are subtracted, the bias is added. What is -inf
// stays so. A token is once in each list.
struct PenaliseRows {
  static constexpr std::string_view kName = "penalise_rows";
  static constexpr uint32_t kThreads = kRowThreads;
  using Params = AdjustParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const DrawRow& row = p.rows[block_index().x];
    if (!changes_logits(row)) return;
    float* const logits = p.adjusted.row(block_index().x);
    if (uses_history(row)) {
      for (uint32_t i = thread_index(); i < row.num_history; i += kThreads) {
        const TokenCount token = row.history[i];
        logits[token.id] = penalised(row, token, logits[token.id]);
      }
    }
    sync_threads();
    for (uint32_t i = thread_index(); i < row.num_biases; i += kThreads) {
      const TokenBias entry = row.biases[i];
      logits[entry.id] = logits[entry.id] + entry.bias;
    }
  }

 private:
  PL_DEVICE static float penalised(const DrawRow& row, const TokenCount& token, float logit) {
    logit = logit > 0.0f ? logit / row.repetition_penalty : logit * row.repetition_penalty;
    if (token.in_output == 0) return logit;
    logit = logit - static_cast<float>(token.in_output) * row.frequency_penalty;
    return logit - row.presence_penalty;
  }
};

// Adds drawn tokens to the histories on the device, which have room for one more.
struct CountTokens {
  static constexpr std::string_view kName = "count_tokens";
  static constexpr uint32_t kThreads = kRowThreads;
  struct Params {
    DrawRow* rows = nullptr;
    const DrawnToken* drawn = nullptr;
  };
  struct Shared {
    uint32_t is_known;
  };

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    DrawRow& row = p.rows[block_index().x];
    const int32_t id = p.drawn[block_index().x].id;
    if (id < 0 || row.history == nullptr) return;
    if (thread_index() == 0) shared.is_known = 0;
    sync_threads();
    const uint32_t count = row.num_history;
    for (uint32_t i = thread_index(); i < count; i += kThreads) {
      if (row.history[i].id != id) continue;
      row.history[i].in_output += 1;
      shared.is_known = 1;  // by one thread at most
    }
    sync_threads();
    if (thread_index() > 0 || shared.is_known != 0) return;
    row.history[count] = {id, 1};
    row.num_history = count + 1;
  }
};

}  // namespace paceline::cuda
