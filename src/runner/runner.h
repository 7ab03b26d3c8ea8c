// Runner computes the batch that the engine has built. Tests have one without weights.
#pragma once

#include <cstdint>
#include <span>

#include "layers/batch.h"

namespace paceline {

class Runner {
 public:
  virtual ~Runner() = default;

  virtual int64_t vocab_size() const = 0;

  // Copies the batch's block copies, computes every row (their keys and values are stored) and
  // keeps the states of its output rows.
  virtual void run(const Batch& batch) = 0;

  // Of the last run, per row: 0 when its state holds a NaN or an infinity, and with it perhaps what
  // was stored.
  virtual std::span<const uint8_t> finite_rows() const = 0;

  // Logits of outputs [first, first + count) of the last run, [count, vocab], in the CPU's memory.
  // `count` is at most max_logits_rows(). Valid until the next call.
  virtual std::span<const float> logits(int64_t first, int64_t count) = 0;
  virtual int64_t max_logits_rows() const = 0;
  // log(sum(exp(row))) of a row of the last logits().
  virtual float log_sum_exp(int64_t row) = 0;

  // Only the listed vocabulary columns, with the same bits: [count, columns].
  virtual std::span<const float> column_logits(int64_t first, int64_t count,
                                               std::span<const int32_t> columns) = 0;
};

}  // namespace paceline
