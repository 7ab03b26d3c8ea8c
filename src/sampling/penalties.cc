#include "sampling/penalties.h"

#include "base/error.h"
#include "sampling/token_mask.h"

namespace paceline {

bool changes_logits(const SamplingOptions& options, const TokenHistory& history) {
  return !options.logit_bias.empty() || options.mask != nullptr ||
         (penalises(options) && !history.tokens().empty());
}

void apply_penalties(std::span<float> logits, const SamplingOptions& options,
                     const TokenHistory& history) {
  if (penalises(options)) {
    for (const auto [id, in_output] : history.tokens()) {
      PL_CHECK(id >= 0 && static_cast<size_t>(id) < logits.size(),
               "token id out of the vocabulary");
      float& logit = logits[static_cast<size_t>(id)];
      logit =
          logit > 0.0f ? logit / options.repetition_penalty : logit * options.repetition_penalty;
      if (in_output == 0) continue;
      logit -= static_cast<float>(in_output) * options.frequency_penalty;
      logit -= options.presence_penalty;
    }
  }
  for (const auto& [id, bias] : options.logit_bias) {
    PL_CHECK(id >= 0 && static_cast<size_t>(id) < logits.size(), "token id out of the vocabulary");
    logits[static_cast<size_t>(id)] += bias;
  }
  if (options.mask) options.mask->apply(logits, history.output());
}

}  // namespace paceline
