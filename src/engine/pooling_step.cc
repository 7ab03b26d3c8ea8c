#include "engine/pooling_step.h"

#include <cmath>
#include <limits>

namespace paceline {
namespace {

RowPooling row_pooling(Pooling pooling) {
  if (pooling == Pooling::weighted_mean) return RowPooling::weighted_sum;
  return pooling == Pooling::max ? RowPooling::max : RowPooling::sum;
}

// 1 + 2 + ... + count.
double sum_to(int64_t count) { return static_cast<double>(count * (count + 1)) / 2.0; }

// What sums of the rows from `begin` to `end` are divided by.
double divisor(Pooling pooling, int64_t begin, int64_t end) {
  const auto rows = static_cast<double>(end - begin);
  switch (pooling) {
    case Pooling::mean:
      return rows;
    case Pooling::weighted_mean:
      return sum_to(end) - sum_to(begin);
    case Pooling::mean_sqrt:
      return std::sqrt(rows);
    case Pooling::last:
    case Pooling::first:
    case Pooling::max:
      return 1.0;
  }
  return 1.0;
}

}  // namespace

void PoolingStep::pool(Runner& runner, const PooledSlice& slice) const {
  Sequence& sequence = *slice.sequence;
  const RowPooling how = row_pooling(*sequence.request().pooling);
  if (sequence.pooled.empty()) {
    constexpr double kLeast = -std::numeric_limits<double>::infinity();
    sequence.pooled.assign(static_cast<size_t>(runner.hidden_size()),
                           how == RowPooling::max ? kLeast : 0.0);
  }
  runner.pool({.how = how,
               .first = slice.first_output,
               .count = slice.count,
               .first_position = slice.first_position},
              sequence.pooled);
}

void PoolingStep::take_ended(std::span<const StepSlice> slices) {
  ended_.clear();
  pooled_.clear();
  for (const StepSlice& slice : slices) {
    Sequence& sequence = *slice.sequence;
    const auto pooling = sequence.request().pooling;
    if (!pooling || sequence.finished || sequence.num_computed < sequence.num_tokens()) continue;
    const double by = divisor(*pooling, sequence.request().pool_from, sequence.num_tokens());
    for (const double sum : sequence.pooled) pooled_.push_back(static_cast<float>(sum / by));
    ended_.push_back(&sequence);
  }
}

void PoolingStep::run(Runner& runner, const StepBatch& batch) {
  for (const PooledSlice& slice : batch.pooled()) {
    if (!slice.sequence->finished) pool(runner, slice);
  }
  take_ended(batch.slices());
  if (ended_.empty()) return;
  const std::span<const float> all = runner.finish_pooled(pooled_, std::ssize(ended_));
  const size_t width = all.size() / ended_.size();
  for (size_t i = 0; i < ended_.size(); ++i) {
    const auto one = all.subspan(i * width, width);
    ended_[i]->prompt_outputs->pooled.assign(one.begin(), one.end());
  }
}

}  // namespace paceline
