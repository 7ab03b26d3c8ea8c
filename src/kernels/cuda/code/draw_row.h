// DrawRow is how the next token of one row of logits is drawn, in the device's memory, where a
// decode loop changes it without the CPU.
#pragma once

#include "base/sampling_numbers.h"
#include "base/token_count.h"
#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

struct TokenBias {
  int32_t id;
  float bias;
};
struct TokenScore {
  int32_t id;
  float logprob;
};

// The numbers are RowDraw's (kernels/row_sampler.h); pointers are to the device's memory. Of a
// list for each slot, penalties touch what it holds and nothing else; counts of a whole vocabulary
// would be as long as the logits, and be read with them.
struct DrawRow : SamplingNumbers {
  int64_t position = 0;          // of the token to be drawn
  int64_t forbidden_before = 0;  // the position from which on the forbidden may be drawn
  TokenCount* history = nullptr;
  const TokenBias* biases = nullptr;
  const uint64_t* allowed = nullptr;  // a bit for each token; those beyond are not allowed
  const int32_t* forbidden = nullptr;
  const int32_t* listed = nullptr;  // whose log-probabilities are reported
  TokenScore* scored = nullptr;     // for these, or for num_top_logprobs
  uint32_t num_history = 0;
  uint32_t num_biases = 0;
  uint32_t num_allowed_words = 0;  // 0: all are allowed
  uint32_t num_forbidden = 0;
  uint32_t num_listed = 0;
  int32_t forced = -1;    // the token that comes without a draw
  uint8_t is_active = 0;  // an empty slot draws -1
  uint8_t wants_logprob = 0;
};

enum class DrawOutcome : int32_t { ok, nan_logits, nothing_to_draw, all_forbidden };

struct DrawnToken {
  int32_t id;
  DrawOutcome outcome;
  float logprob;        // 0 unless it was asked for
  uint32_t num_scored;  // entries of DrawRow::scored
};

// Without branches: all that is asked is read at once.
PL_DEVICE bool uses_history(const DrawRow& row) { return (row.num_history > 0) & penalises(row); }
PL_DEVICE bool forbids(const DrawRow& row) {
  return (row.num_forbidden > 0) & (row.position < row.forbidden_before);
}
// Whether it draws from other logits than the model's.
PL_DEVICE bool changes_logits(const DrawRow& row) {
  return (row.is_active != 0) & (row.forced < 0) &
         ((row.num_allowed_words > 0) | (row.num_biases > 0) | uses_history(row) | forbids(row));
}

}  // namespace paceline::cuda
