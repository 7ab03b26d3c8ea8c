#include "traffic/paced_server/paced_runner.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "engine/sequence.h"
#include "engine/step_engine.h"
#include "traffic/token_script.h"

namespace paceline::traffic {
namespace {

constexpr float kHot = 64;  // so likely that no other token is drawn with any sampling options

}  // namespace

PacedRunner::PacedRunner(int64_t vocab_size, const PaceOptions& options)
    : vocab_size_(vocab_size),
      options_(options),
      pacer_(options.rate, options.prefill_rate),
      rows_(static_cast<size_t>(kNumRows * vocab_size)),
      hot_(static_cast<size_t>(kNumRows)) {}

bool PacedRunner::is_decoding() const {
  const auto running = engine_->running();
  return std::any_of(running.begin(), running.end(), [](const auto& sequence) {
    return sequence != nullptr && sequence->num_output() > 0;
  });
}

void PacedRunner::run(const Batch& batch, AdapterTable /*adapters*/) {
  int64_t prefill_rows = 0;
  for (const AttentionSlice& slice : batch.groups[0].slices) {
    prefill_rows += slice.num_rows > 1 ? slice.num_rows : 0;
  }
  const auto end = pacer_.end_of_step(Clock::now(), is_decoding(), prefill_rows);
  finite_.assign(static_cast<size_t>(batch.num_rows()), 1);
  next_.clear();
  for (const int32_t row : batch.output_rows) {
    const auto at = static_cast<size_t>(row);
    next_.push_back(next_token(batch.tokens[at], batch.positions[at]));
  }
  std::this_thread::sleep_until(end);
  if (num_steps_++ == options_.stall_after) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.stall_seconds));
  }
}

std::span<const float> PacedRunner::logits(int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    float* const row = rows_.data() + i * vocab_size_;
    int32_t& hot = hot_[static_cast<size_t>(i)];
    row[hot] = 0;
    hot = next_[static_cast<size_t>(first + i)];
    row[hot] = kHot;
  }
  return std::span(rows_).first(static_cast<size_t>(count * vocab_size_));
}

// One token's logit is kHot, all others are 0.
float PacedRunner::log_sum_exp(int64_t /*row*/) {
  return std::log(std::exp(kHot) + static_cast<float>(vocab_size_ - 1));
}

std::span<const float> PacedRunner::column_logits(int64_t first, int64_t count,
                                                  std::span<const int32_t> columns) {
  const std::span<const float> all = logits(first, count);
  column_rows_.clear();
  for (int64_t i = 0; i < count; ++i) {
    for (const int32_t column : columns)
      column_rows_.push_back(all[static_cast<size_t>(i * vocab_size_ + column)]);
  }
  return column_rows_;
}

}  // namespace paceline::traffic
