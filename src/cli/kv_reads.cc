#include "cli/kv_reads.h"

#include <algorithm>

#include "base/state_chunk.h"
#include "load/cache_sizing.h"

namespace paceline {
namespace {

// Every row sees its own position and those before it, as far as the window reaches.
int64_t positions_seen(const StepRecord::Slice& slice, int64_t window) {
  const int64_t oldest = window == 0 ? 0 : std::max<int64_t>(slice.first - window + 1, 0);
  return slice.first + slice.count - oldest;
}

}  // namespace

KvReads::KvReads(const DecoderConfig& config, DType dtype, DType state_dtype, StepObserver* next)
    : next_(next) {
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    const LayerConfig& layer = config.layers[static_cast<size_t>(i)];
    if (layer.mixer == MixerKind::attention) {
      const auto bytes = static_cast<int64_t>(kv_read_bytes(config, i, dtype));
      layers_.push_back({.window = layer.window, .position_bytes = bytes});
    }
    state_bytes_ +=
        state_matrix_elements(config, i) * static_cast<int64_t>(dtype_bytes(state_dtype));
  }
}

void KvReads::on_submitted(const Sequence& sequence, int64_t step) {
  if (next_ != nullptr) next_->on_submitted(sequence, step);
}

void KvReads::on_cancelled(RequestId id, int64_t step) {
  if (next_ != nullptr) next_->on_cancelled(id, step);
}

void KvReads::on_step(const StepRecord& record) {
  for (const StepRecord::Slice& slice : record.slices) {
    for (const LayerReads& layer : layers_) {
      bytes_ += layer.position_bytes * positions_seen(slice, layer.window);
    }
    const int64_t last = slice.first + slice.count - 1;
    bytes_ += state_bytes_ * (last / kStateChunk - slice.first / kStateChunk + 1);
  }
  if (next_ != nullptr) next_->on_step(record);
}

}  // namespace paceline
