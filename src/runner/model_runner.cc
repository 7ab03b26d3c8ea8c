#include "runner/model_runner.h"

#include <algorithm>

#include "kernels/backend.h"
#include "kernels/row_sampler.h"

namespace paceline {

ModelRunner::ModelRunner(const Decoder& decoder, Backend& backend, KvStorage kv,
                         RunnerLimits limits)
    : decoder_(decoder),
      backend_(backend),
      kv_(std::move(kv)),
      limits_(limits),
      scratch_(backend.memory(),
               forward_scratch_bytes(decoder.config(), limits.max_rows, limits.adapters)),
      hidden_(allocate_rows(backend.memory(), limits.max_rows, decoder.config().hidden_size)),
      logits_(allocate_tensor(backend.memory(), DType::f32,
                              {limits.max_logits_rows, decoder.config().vocab_size})) {
  finite_rows_.reserve(static_cast<size_t>(limits.max_rows));
}

void ModelRunner::run(const Batch& batch, AdapterTable adapters) {
  PL_CHECK(batch.num_rows() <= limits_.max_rows, "batch beyond the runner's rows");
  PL_CHECK(batch.adapters.empty() || limits_.adapters == AdapterUse::any,
           "a batch with adapters in a runner without");
  copy_blocks(backend_, decoder_, kv_, batch);
  finite_rows_.resize(static_cast<size_t>(batch.num_rows()));
  BatchView view = batch.view(adapters);
  if (observer_ != nullptr) view.adapters = std::ref(*observer_);
  decoder_.forward(backend_, view, kv_, scratch_, {.out = hidden_.view, .finite = finite_rows_});
}

DecodeLoop* ModelRunner::decode_loop() {
  constexpr int64_t kMostSequences = 256;
  if (!has_looked_for_loop_) {
    has_looked_for_loop_ = true;
    decode_loop_ = ModelDecodeLoop::make({.decoder = decoder_,
                                          .backend = backend_,
                                          .kv = kv_,
                                          .scratch = scratch_,
                                          .hidden = hidden_.view,
                                          .logits = logits_.view},
                                         std::min(limits_.max_rows, kMostSequences));
  }
  return decode_loop_.get();
}

std::span<const float> ModelRunner::logits(int64_t first, int64_t count) {
  PL_CHECK(count <= limits_.max_logits_rows, "more logits rows than the runner keeps");
  const Tensor out = logits_.view.slice(0, 0, count);
  if (observer_ != nullptr) observer_->observe_head(hidden_.view.slice(0, first, first + count));
  decoder_.logits(backend_, hidden_.view.slice(0, first, first + count), out);
  return backend_.read(out, read_logits_);
}

float ModelRunner::log_sum_exp(int64_t row) {
  float sum = 0.0f;
  backend_.log_sum_exp(logits_.view.slice(0, row, row + 1), std::span(&sum, 1));
  return sum;
}

bool ModelRunner::draws_rows() const { return backend_.row_sampler() != nullptr; }

// Neighbouring outputs share a product, as many as there is room for.
void ModelRunner::draw_rows(std::span<const int64_t> outputs, std::span<const RowDraw> draws,
                            std::span<Sample> samples) {
  PL_CHECK(draws.size() == outputs.size(), "a draw for each output");
  RowSampler& sampler = *backend_.row_sampler();
  sampler.begin(draws, vocab_size());
  for (size_t begin = 0; begin < outputs.size();) {
    size_t end = begin + 1;
    while (end < outputs.size() && outputs[end] == outputs[end - 1] + 1 &&
           static_cast<int64_t>(end - begin) < limits_.max_logits_rows) {
      ++end;
    }
    const int64_t first = outputs[begin], count = static_cast<int64_t>(end - begin);
    const Tensor out = logits_.view.slice(0, 0, count);
    decoder_.logits(backend_, hidden_.view.slice(0, first, first + count), out);
    sampler.draw(static_cast<int64_t>(begin), out);
    begin = end;
  }
  sampler.finish(samples);
}

std::span<const float> ModelRunner::column_logits(int64_t first, int64_t count,
                                                  std::span<const int32_t> columns) {
  PL_CHECK(count <= limits_.max_logits_rows, "more logits rows than the runner keeps");
  PL_CHECK(static_cast<int64_t>(columns.size()) <= vocab_size(), "more columns than tokens");
  if (!std::equal(columns.begin(), columns.end(), gathered_ids_.begin(), gathered_ids_.end())) {
    gathered_ = backend_.gather_columns(decoder_.head(), columns);
    gather_bias(columns);
    gathered_ids_.assign(columns.begin(), columns.end());
  }
  const int64_t width = std::ssize(columns);
  const Tensor out = logits_.view.as_strided({count, width}, {width, 1});
  decoder_.column_logits(backend_, hidden_.view.slice(0, first, first + count), gathered_,
                         gathered_bias_ ? &gathered_bias_->view : nullptr, out);
  return backend_.read(out, read_logits_);
}

void ModelRunner::gather_bias(std::span<const int32_t> columns) {
  const Tensor* const bias = decoder_.head_bias();
  if (bias == nullptr) return;
  gathered_bias_ = allocate_tensor(backend_.memory(), DType::f32, {std::ssize(columns)});
  const auto as_rows = [](const Tensor& vector) {
    return vector.as_strided({vector.size(0), 1}, {1, 1});
  };
  backend_.gather_rows(as_rows(*bias), columns, as_rows(gathered_bias_->view));
}

void ModelRunner::pool(const PooledOutputs& outputs, std::span<double> pooled) {
  const Tensor states = hidden_.view.slice(0, outputs.first, outputs.first + outputs.count)
                            .slice(1, 0, hidden_size());
  backend_.pool_rows(outputs.how, states, outputs.first_position, pooled);
}

std::span<const float> ModelRunner::finish_pooled(std::span<const float> pooled, int64_t count) {
  PL_CHECK(std::ssize(pooled) == count * hidden_size(), "pooled states of another size");
  return pooled_head_ ? pooled_head_->forward(backend_, pooled, count) : pooled;
}

size_t runner_activation_bytes(const DecoderConfig& config, const RunnerLimits& limits) {
  const int64_t hidden = limits.max_rows * row_stride(config.hidden_size);
  const int64_t logits = limits.max_logits_rows * config.vocab_size;
  return forward_scratch_bytes(config, limits.max_rows, limits.adapters) +
         sizeof(float) * static_cast<size_t>(hidden + logits);
}

}  // namespace paceline
