// Runner computes the batch that the engine has built. Tests have one without weights.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "kernels/row_sampler.h"
#include "layers/batch.h"

namespace paceline {

// Outputs of a run that are consecutive positions of one sequence.
struct PooledOutputs {
  RowPooling how = RowPooling::sum;
  int64_t first = 0;
  int64_t count = 0;
  int64_t first_position = 0;
};

class DecodeLoop;

class Runner {
 public:
  virtual ~Runner() = default;

  virtual int64_t vocab_size() const = 0;
  // DecoderConfig::stretched_length of a sequence of up to `length` tokens, its output included:
  // fixed for the sequence, in all of its batches. Any thread may call it.
  virtual int64_t stretched_length(int64_t /*length*/) const { return 0; }

  // Copies the batch's block copies, computes every row (their keys and values are stored) and
  // keeps the states of its output rows. The table has the batch's adapters.
  virtual void run(const Batch& batch, AdapterTable adapters) = 0;

  // Runs steps without the CPU in between; nullptr if this runner can't. Valid as long as the
  // runner. Other work of the runner starts after the loop's steps that are under way.
  virtual DecodeLoop* decode_loop() { return nullptr; }

  // Of the last run, per row: 0 when its state holds a NaN or an infinity, and with it perhaps what
  // was stored.
  virtual std::span<const uint8_t> finite_rows() const = 0;

  // Logits of outputs [first, first + count) of the last run, [count, vocab], in the CPU's memory.
  // `count` is at most max_logits_rows(). Valid until the next call.
  virtual std::span<const float> logits(int64_t first, int64_t count) = 0;
  virtual int64_t max_logits_rows() const = 0;
  // log(sum(exp(row))) of a row of the last logits().
  virtual float log_sum_exp(int64_t row) = 0;

  // Whether draw_rows() may be called.
  virtual bool draws_rows() const { return false; }
  // Draws a token from each of these outputs of the last run, in ascending order, without handing
  // out their logits. What logits() returned is no longer valid.
  virtual void draw_rows(std::span<const int64_t> /*outputs*/, std::span<const RowDraw> /*draws*/,
                         std::span<Sample> /*samples*/) {
    PL_CHECK(false, "this runner draws no rows");
  }

  // Only the listed vocabulary columns, with the same bits: [count, columns].
  virtual std::span<const float> column_logits(int64_t first, int64_t count,
                                               std::span<const int32_t> columns) = 0;

  // Elements of a state; 0: the runner pools none.
  virtual int64_t hidden_size() const { return 0; }
  // Combines the states of outputs [first, first + count) of the last run, at positions
  // first_position and following, with `pooled` [hidden_size], as Backend::pool_rows does.
  virtual void pool(const PooledOutputs& /*outputs*/, std::span<double> /*pooled*/) {
    PL_CHECK(false, "this runner pools no states");
  }
  // What the model makes of pooled states [count, hidden_size]: vectors [count, any width]. Valid
  // until the next call.
  virtual std::span<const float> finish_pooled(std::span<const float> /*pooled*/,
                                               int64_t /*count*/) {
    PL_CHECK(false, "this runner pools no states");
    return {};
  }
};

}  // namespace paceline
