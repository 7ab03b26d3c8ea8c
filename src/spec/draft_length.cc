#include "spec/draft_length.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr int64_t kMaxOutcomes = 32;          // the estimate follows that many drafted tokens
constexpr double kLeastGain = 1.02;           // below it errors of the estimates decide
constexpr double kLeastPossibleGain = 1.05;   // of a token that is always accepted
constexpr int64_t kRareProbeInterval = 1024;  // steps, where not even such a token pays

// The tokens of a sequence's step by its seconds, with drafts of `length` tokens.
double tokens_per_second(double tokens, const RowCost& cost, int64_t num_decodes, int64_t length) {
  const double draft = cost.draft_seconds() * static_cast<double>(num_decodes * length);
  return tokens / (cost.seconds(num_decodes * (1 + length)) + draft);
}

}  // namespace

void AcceptanceRate::record(int64_t drafted, int64_t accepted) {
  ++steps_since_rejection_;
  if (drafted <= 0) return;
  for (int64_t i = 0; i < std::min(accepted + 1, drafted); ++i) {
    num_outcomes_ = std::min(num_outcomes_ + 1, kMaxOutcomes);
    value_ += ((i < accepted ? 1.0 : 0.0) - value_) / static_cast<double>(num_outcomes_);
  }
  steps_since_rejection_ =
      accepted < drafted ? 0 : std::max(steps_since_rejection_, kProbeInterval);
}

int64_t draft_length(const AcceptanceRate& acceptance, const RowCost& cost, int64_t num_decodes,
                     int64_t most) {
  if (most <= 0 || num_decodes <= 0 || !cost.is_fresh(num_decodes)) return 0;
  const double without = tokens_per_second(1.0, cost, num_decodes, 0);
  const int64_t longest = std::max<int64_t>(2 * cost.max_measured() / num_decodes - 1, 1);
  double best = kLeastGain * without;
  int64_t best_length = 0;
  double tokens = 1.0;
  double all_accepted = 1.0;
  for (int64_t length = 1; length <= std::min(most, longest); ++length) {
    all_accepted *= acceptance.value();
    tokens += all_accepted;
    const double rate = tokens_per_second(tokens, cost, num_decodes, length);
    if (rate > best) {
      best = rate;
      best_length = length;
    }
  }
  if (best_length > 0) return best_length;
  const bool can_pay = tokens_per_second(2.0, cost, num_decodes, 1) > kLeastPossibleGain * without;
  const int64_t interval = can_pay ? AcceptanceRate::kProbeInterval : kRareProbeInterval;
  return acceptance.steps_since_rejection() >= interval ? 1 : 0;
}

}  // namespace paceline
