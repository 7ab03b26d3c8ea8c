// RowDraws says how tokens are drawn where the logits are: a RowDraw for what Sampler would be
// called with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runner/runner.h"
#include "sampling/sampling_options.h"
#include "sampling/token_history.h"

namespace paceline {

// One token, as draw() of a Sampler has it, or chosen().
struct TokenDraw {
  const SamplingOptions& options;
  const TokenHistory& history;
  std::span<const uint64_t> allowed = {};  // of a constraint; none: all
  int64_t position = 0;
  std::optional<int32_t> chosen = {};
  bool wants_logprob = false;
};

class RowDraws {
 public:
  void clear();
  // What `draw` refers to stays as it is until the draws are made.
  void add(const TokenDraw& draw, int64_t vocab_size);

  std::span<const RowDraw> draws() const { return draws_; }

 private:
  std::span<const uint64_t> add_mask(const TokenDraw& draw, int64_t vocab_size);

  std::vector<RowDraw> draws_;
  std::vector<std::vector<uint64_t>> masks_;  // reused
  size_t num_masks_ = 0;
};

}  // namespace paceline
