#include "engine/model_runner.h"

#include <algorithm>

namespace paceline {

ModelRunner::ModelRunner(const Decoder& decoder, Backend& backend, Memory& memory, KvStorage kv,
                         RunnerLimits limits)
    : decoder_(decoder),
      backend_(backend),
      memory_(memory),
      kv_(std::move(kv)),
      limits_(limits),
      scratch_(memory, forward_scratch_bytes(decoder.config(), limits.max_rows)),
      hidden_(allocate_rows(memory, limits.max_rows, decoder.config().hidden_size)),
      logits_(allocate_tensor(memory, DType::f32,
                              {limits.max_logits_rows, decoder.config().vocab_size})) {
  finite_rows_.reserve(static_cast<size_t>(limits.max_rows));
}

void ModelRunner::run(const Batch& batch) {
  PL_CHECK(batch.num_rows() <= limits_.max_rows, "batch beyond the runner's rows");
  for (int64_t layer = 0; layer < decoder_.config().num_layers(); ++layer) {
    const GroupBatch& group = batch.groups[static_cast<size_t>(decoder_.cache_group(layer))];
    for (const BlockMove& move : group.copies) kv_.copy_block(layer, move.from, move.to);
  }
  finite_rows_.resize(static_cast<size_t>(batch.num_rows()));
  decoder_.forward(backend_, batch, kv_, scratch_, {.out = hidden_.view, .finite = finite_rows_});
}

Tensor ModelRunner::logits(int64_t first, int64_t count) {
  PL_CHECK(count <= limits_.max_logits_rows, "more logits rows than the runner keeps");
  const Tensor out = logits_.view.slice(0, 0, count);
  decoder_.logits(backend_, hidden_.view.slice(0, first, first + count), out);
  return out;
}

Tensor ModelRunner::column_logits(int64_t first, int64_t count, std::span<const int32_t> columns) {
  PL_CHECK(count <= limits_.max_logits_rows, "more logits rows than the runner keeps");
  PL_CHECK(static_cast<int64_t>(columns.size()) <= vocab_size(), "more columns than tokens");
  if (!std::equal(columns.begin(), columns.end(), gathered_ids_.begin(), gathered_ids_.end())) {
    gathered_ = gather_columns(decoder_.head(), columns, memory_);
    gathered_ids_.assign(columns.begin(), columns.end());
  }
  const Tensor out(logits_.view.raw(), DType::f32, {count, static_cast<int64_t>(columns.size())});
  decoder_.column_logits(backend_, hidden_.view.slice(0, first, first + count), gathered_, out);
  return out;
}

size_t runner_activation_bytes(const DecoderConfig& config, const RunnerLimits& limits) {
  const int64_t hidden = limits.max_rows * row_stride(config.hidden_size);
  const int64_t logits = limits.max_logits_rows * config.vocab_size;
  return forward_scratch_bytes(config, limits.max_rows) +
         sizeof(float) * static_cast<size_t>(hidden + logits);
}

}  // namespace paceline
