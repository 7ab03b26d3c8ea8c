#include "spec/draft_length.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr int64_t kMaxOutcomes = 32;          // the estimate follows that many drafted tokens
constexpr double kLeastGain = 1.02;           // of a sequence's draft: below it errors decide
constexpr double kLeastStepGain = 1.04;       // of all drafts of a step
constexpr double kLeastPossibleGain = 1.05;   // of a token that is always accepted
constexpr int64_t kRareProbeInterval = 1024;  // steps, where not even such a token pays

// Tokens per second of a step that draws `tokens` tokens, of which `drafted` rows are drafts.
double tokens_per_second(double tokens, const RowCost& cost, int64_t num_decodes, int64_t drafted) {
  return tokens / (cost.seconds(num_decodes + drafted) +
                   cost.draft_seconds() * static_cast<double>(drafted));
}

}  // namespace

void AcceptanceRate::record(int64_t drafted, int64_t accepted) {
  ++steps_since_rejection_;
  is_accepted_ = drafted > 0 && accepted == drafted;
  if (drafted <= 0) return;
  for (int64_t i = 0; i < std::min(accepted + 1, drafted); ++i) {
    num_outcomes_ = std::min(num_outcomes_ + 1, kMaxOutcomes);
    value_ += ((i < accepted ? 1.0 : 0.0) - value_) / static_cast<double>(num_outcomes_);
  }
  steps_since_rejection_ =
      accepted < drafted ? 0 : std::max(steps_since_rejection_, kProbeInterval);
}

// The lengths; false if the step is better without drafts.
bool DraftLengths::draft_as_if_all_did(std::span<const DraftCandidate> candidates,
                                       const RowCost& cost, int64_t num_decodes) {
  const auto num = static_cast<double>(num_decodes);
  const double plain_rate = tokens_per_second(num, cost, num_decodes, 0);
  const int64_t longest = std::max<int64_t>(2 * cost.max_measured() / num_decodes - 1, 1);
  double expected = num;
  int64_t drafted = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    double best_rate = kLeastGain * plain_rate;
    double best_gain = 0.0;
    double gain = 0.0;
    double all_accepted = 1.0;
    for (int64_t length = 1; length <= std::min(candidates[i].most, longest); ++length) {
      all_accepted *= candidates[i].acceptance->value();
      gain += all_accepted;
      const double rate =
          tokens_per_second(num * (1.0 + gain), cost, num_decodes, num_decodes * length);
      if (rate > best_rate) {
        best_rate = rate;
        best_gain = gain;
        lengths_[i] = length;
      }
    }
    expected += best_gain;
    drafted += lengths_[i];
  }
  return tokens_per_second(expected, cost, num_decodes, drafted) > kLeastStepGain * plain_rate;
}

std::span<const int64_t> DraftLengths::choose(std::span<const DraftCandidate> candidates,
                                              const RowCost& cost, int64_t num_decodes) {
  lengths_.assign(candidates.size(), 0);
  if (num_decodes <= 0 || !cost.is_fresh(num_decodes)) return lengths_;
  if (!draft_as_if_all_did(candidates, cost, num_decodes)) {
    lengths_.assign(candidates.size(), 0);
    probe(candidates, cost, num_decodes);
  }
  return lengths_;
}

// One more row may cost as much as a whole tile of rows, so all sequences that are due are probed
// in the same step.
void DraftLengths::probe(std::span<const DraftCandidate> candidates, const RowCost& cost,
                         int64_t num_decodes) {
  const auto would_pay = [&cost, num_decodes](int64_t drafted, double least_gain) {
    const auto tokens = static_cast<double>(num_decodes);
    return tokens_per_second(tokens + static_cast<double>(drafted), cost, num_decodes, drafted) >
           least_gain * tokens_per_second(tokens, cost, num_decodes, 0);
  };
  const int64_t interval = would_pay(num_decodes, kLeastPossibleGain)
                               ? AcceptanceRate::kProbeInterval
                               : kRareProbeInterval;
  const auto is_due = [interval](const DraftCandidate& one) {
    return one.most > 0 && one.acceptance->steps_since_rejection() >= interval;
  };
  const auto was_accepted = [&is_due](const DraftCandidate& one) {
    return is_due(one) && one.acceptance->is_accepted();
  };
  const bool all_may = ++steps_since_probes_ >= interval ||
                       std::all_of(candidates.begin(), candidates.end(), is_due);
  if (all_may) steps_since_probes_ = 0;
  const bool accepted_may =
      would_pay(std::count_if(candidates.begin(), candidates.end(), was_accepted), 1.0);
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (all_may ? is_due(candidates[i]) : accepted_may && was_accepted(candidates[i])) {
      lengths_[i] = 1;
    }
  }
}

}  // namespace paceline
