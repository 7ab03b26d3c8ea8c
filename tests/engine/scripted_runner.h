// ScriptedRunner plays back logits without weights: what follows a token is a pure function of it.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "engine/runner.h"

namespace paceline::testing {

// Fills a row of logits [vocab] for the token that follows `token` at `position`.
using Script = std::function<void(int32_t token, int32_t position, std::span<float> logits)>;

class ScriptedRunner : public Runner {
 public:
  ScriptedRunner(int64_t vocab_size, Script script)
      : vocab_size_(vocab_size), script_(std::move(script)) {}

  int64_t vocab_size() const override { return vocab_size_; }
  int64_t max_logits_rows() const override { return 4; }

  void run(const Batch& batch) override {
    ++num_runs;
    num_rows += batch.num_rows();
    outputs_.clear();
    for (const int32_t row : batch.output_rows) {
      const auto at = static_cast<size_t>(row);
      outputs_.emplace_back(batch.tokens[at], batch.positions[at]);
    }
  }

  Tensor logits(int64_t first, int64_t count) override {
    rows_.assign(static_cast<size_t>(count * vocab_size_), 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      const auto [token, position] = outputs_[static_cast<size_t>(first + i)];
      script_(token, position,
              std::span(rows_).subspan(static_cast<size_t>(i * vocab_size_),
                                       static_cast<size_t>(vocab_size_)));
    }
    return Tensor(rows_.data(), DType::f32, {count, vocab_size_});
  }

  Tensor column_logits(int64_t first, int64_t count, std::span<const int32_t> columns) override {
    const Tensor all = logits(first, count);
    columns_.clear();
    for (int64_t i = 0; i < count; ++i) {
      for (const int32_t column : columns) columns_.push_back(all.row<float>(i)[column]);
    }
    return Tensor(columns_.data(), DType::f32, {count, static_cast<int64_t>(columns.size())});
  }

  int64_t num_runs = 0;
  int64_t num_rows = 0;

 private:
  int64_t vocab_size_;
  Script script_;
  std::vector<std::pair<int32_t, int32_t>> outputs_;
  std::vector<float> rows_;
  std::vector<float> columns_;
};

}  // namespace paceline::testing
