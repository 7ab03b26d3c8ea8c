// ModelRunner runs batches on a decoder with a backend; it owns keys, values and activations.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "layers/kv_storage.h"
#include "layers/scratch.h"
#include "models/decoder.h"
#include "models/pooled_head.h"
#include "runner/model_decode_loop.h"
#include "runner/runner.h"

namespace paceline {

struct RunnerLimits {
  int64_t max_rows = 512;
  int64_t max_logits_rows = 64;
  AdapterUse adapters = AdapterUse::none;
};

class ModelRunner : public Runner {
 public:
  // Everything referred to must outlive it.
  ModelRunner(const Decoder& decoder, Backend& backend, KvStorage kv, RunnerLimits limits);

  int64_t vocab_size() const override { return decoder_.config().vocab_size; }
  int64_t stretched_length(int64_t length) const override {
    return decoder_.config().stretched_length(length);
  }
  void run(const Batch& batch, AdapterTable adapters) override;
  DecodeLoop* decode_loop() override;
  std::span<const uint8_t> finite_rows() const override { return finite_rows_; }
  std::span<const float> logits(int64_t first, int64_t count) override;
  int64_t max_logits_rows() const override { return limits_.max_logits_rows; }
  float log_sum_exp(int64_t row) override;
  bool draws_rows() const override;
  void draw_rows(std::span<const int64_t> outputs, std::span<const RowDraw> draws,
                 std::span<Sample> samples) override;
  std::span<const float> column_logits(int64_t first, int64_t count,
                                       std::span<const int32_t> columns) override;
  int64_t hidden_size() const override { return decoder_.config().hidden_size; }
  void pool(const PooledOutputs& outputs, std::span<double> pooled) override;
  std::span<const float> finish_pooled(std::span<const float> pooled, int64_t count) override;

  // Shows the inputs of all products from now on to `observer`, which must outlive the runner; the
  // runner's limits permit adapters, and batches have none.
  void set_observer(InputObserver& observer) { observer_ = &observer; }

  // What finish_pooled() applies; without one it returns the pooled states.
  void set_pooled_head(PooledHead head) { pooled_head_.emplace(std::move(head)); }

 private:
  void gather_bias(std::span<const int32_t> columns);

  const Decoder& decoder_;
  Backend& backend_;
  KvStorage kv_;
  RunnerLimits limits_;
  Scratch scratch_;
  OwnedTensor hidden_;              // [max_rows, hidden]
  OwnedTensor logits_;              // [max_logits_rows, vocab]
  std::vector<float> read_logits_;  // a copy of them where the CPU can't read the backend's memory
  std::vector<uint8_t> finite_rows_;
  std::vector<int32_t> gathered_ids_;  // what gathered_ holds
  PackedMatrix gathered_;
  std::optional<OwnedTensor> gathered_bias_;
  std::optional<PooledHead> pooled_head_;
  InputObserver* observer_ = nullptr;  // null: none
  bool has_looked_for_loop_ = false;
  std::unique_ptr<ModelDecodeLoop> decode_loop_;
};

// What a ModelRunner allocates beside the keys and values, known before there is a decoder.
size_t runner_activation_bytes(const DecoderConfig& config, const RunnerLimits& limits);

}  // namespace paceline
