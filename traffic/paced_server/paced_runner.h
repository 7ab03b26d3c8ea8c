// PacedRunner is a model without weights: its tokens follow a rule, its steps take a given time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runner/runner.h"
#include "traffic/paced_server/pacer.h"

namespace paceline {
class StepEngine;
}

namespace paceline::traffic {

struct PaceOptions {
  double rate = 20;               // decode steps per second
  double prefill_rate = 200'000;  // prompt tokens per second
  int64_t stall_after = -1;       // the step after this many hangs; negative: none does
  double stall_seconds = 0;
};

class PacedRunner : public Runner {
 public:
  PacedRunner(int64_t vocab_size, const PaceOptions& options);

  // Sets the engine of these steps, which knows whether a sequence decodes. Call it before the
  // first run.
  void watch(const StepEngine* engine) { engine_ = engine; }

  int64_t vocab_size() const override { return vocab_size_; }
  int64_t max_logits_rows() const override { return kNumRows; }
  std::span<const uint8_t> finite_rows() const override { return finite_; }

  void run(const Batch& batch, AdapterTable adapters) override;
  std::span<const float> logits(int64_t first, int64_t count) override;
  float log_sum_exp(int64_t row) override;
  std::span<const float> column_logits(int64_t first, int64_t count,
                                       std::span<const int32_t> columns) override;

 private:
  static constexpr int64_t kNumRows = 16;

  bool is_decoding() const;

  int64_t vocab_size_;
  PaceOptions options_;
  Pacer pacer_;
  const StepEngine* engine_ = nullptr;
  int64_t num_steps_ = 0;
  std::vector<int32_t> next_;    // by output of the last run
  std::vector<uint8_t> finite_;  // always
  std::vector<float> rows_;      // [kNumRows, vocab]: zeros, except one column each
  std::vector<int32_t> hot_;     // [kNumRows] that column
  std::vector<float> column_rows_;
};

}  // namespace paceline::traffic
