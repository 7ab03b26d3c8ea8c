#include "runner/model_decode_loop.h"

#include <algorithm>

#include "kernels/backend.h"

namespace paceline {
namespace {

// Factors of queries are computed on the CPU.
bool needs_cpu(const DecoderConfig& config) {
  return config.query_growth.beta != 0.0 || config.bidirectional;
}

// Those of the cache but for open rows, the last one, whose blocks stand in the slices of states.
std::vector<DecodeGroup> groups_of(const DecoderConfig& config) {
  std::vector<DecodeGroup> groups;
  for (const LayerGroup& group : cache_groups(config)) {
    if (group.holds_open_rows) continue;
    groups.push_back({.window = group.window, .has_states = group.is_recurrent});
  }
  return groups;
}

}  // namespace

void copy_blocks(Backend& backend, const Decoder& decoder, const KvStorage& kv,
                 const Batch& batch) {
  for (int64_t layer = 0; layer < decoder.config().num_layers(); ++layer) {
    const GroupBatch& group = batch.groups[static_cast<size_t>(decoder.cache_group(layer))];
    if (kv.has_states(layer)) {
      const auto open = static_cast<size_t>(decoder.cache_group(layer)) + 1;
      const auto& [convolution, matrices] = kv.states(layer);
      for (const StateMemory& memory : {convolution, matrices}) {
        backend.recurrent()->copy_states(memory.states, group.copies);
        backend.recurrent()->copy_states(memory.open_rows, batch.groups[open].copies);
      }
    } else if (kv.has_own_keys(layer)) {
      backend.copy_blocks(kv.layer(layer), group.copies);
    }
  }
}

std::unique_ptr<ModelDecodeLoop> ModelDecodeLoop::make(const Parts& parts, int64_t max_sequences) {
  const DecoderConfig& config = parts.decoder.config();
  if (config.mixture) max_sequences = std::min(max_sequences, kMostMixedRows);
  if (needs_cpu(config) || max_sequences <= 0) return nullptr;
  auto loop = std::unique_ptr<ModelDecodeLoop>(new ModelDecodeLoop(parts, max_sequences));
  return loop->slots_ != nullptr ? std::move(loop) : nullptr;
}

ModelDecodeLoop::ModelDecodeLoop(const Parts& parts, int64_t max_sequences)
    : parts_(parts),
      max_sequences_(max_sequences),
      num_groups_(groups_of(parts.decoder.config()).size()),
      slots_(parts.backend.make_decode_slots(
          {.num_slots = max_sequences,
           .groups = groups_of(parts.decoder.config()),
           .block_size = parts.kv.block_size(),
           .num_products =
               parts.decoder.config().num_layers() * static_cast<int64_t>(kNumBlockProducts)})) {}

void ModelDecodeLoop::compute(const DecodeStep& step) {
  BatchView batch{.arrays = step.arrays};
  if (step.has_adapters) batch.adapters = std::ref(*slots_);
  parts_.decoder.forward(parts_.backend, batch, parts_.kv, parts_.scratch,
                         {.out = parts_.hidden, .finite = step.finite});
  const int64_t rows = step.arrays.num_rows(), at_once = parts_.logits.size(0);
  for (int64_t first = 0; first < rows; first += at_once) {
    const int64_t count = std::min(at_once, rows - first);
    const Tensor logits = parts_.logits.slice(0, 0, count);
    parts_.decoder.logits(parts_.backend, parts_.hidden.slice(0, first, first + count), logits);
    slots_->draw(first, logits);
  }
}

std::span<const std::vector<LoraSegment>> ModelDecodeLoop::list_segments(const AdaptedRows& rows) {
  if (rows.rows.empty()) return {};
  const auto num_layers = static_cast<size_t>(parts_.decoder.config().num_layers());
  segments_.resize(num_layers * kNumBlockProducts);
  std::vector<LoraSegment> unused;
  for (size_t block = 0; block < num_layers; ++block) {
    const BlockAdapters adapters(rows, block, unused);
    for (size_t i = 0; i < kNumBlockProducts; ++i) {
      adapters.list(static_cast<BlockProduct>(i), segments_[block * kNumBlockProducts + i]);
    }
  }
  return segments_;
}

void ModelDecodeLoop::start(const Batch& batch, AdapterTable adapters,
                            std::span<const DecodeTerms> terms) {
  PL_CHECK(batch.num_rows() == std::ssize(terms) && batch.num_outputs() == batch.num_rows(),
           "a loop's slices are one row each, and outputs");
  PL_CHECK(batch.stretched.empty(), "a loop has no stretched rows");
  PL_CHECK(batch.adapters.empty() || takes_adapters(), "a loop of a mixture has no adapters");
  copy_blocks(parts_.backend, parts_.decoder, parts_.kv, batch);
  loaded_.clear();
  for (size_t i = 0; i < terms.size(); ++i) {
    loaded_.push_back({.token = batch.tokens[i],
                       .position = batch.positions[i],
                       .num_steps = terms[i].num_steps,
                       .stop_ids = terms[i].stop_ids,
                       .forbidden_ids = terms[i].forbidden_ids,
                       .num_forbidding = terms[i].num_forbidding,
                       .draw = terms[i].draw});
  }
  memory_.clear();
  for (size_t g = 0; g < num_groups_; ++g) {
    const GroupBatch& group = batch.groups[g];
    memory_.push_back({.slices = group.slices, .states = {group.states, group.saves}});
  }
  slots_->load(loaded_, memory_, list_segments({batch.adapters, adapters}),
               [this](const DecodeStep& step) { compute(step); });
  slots_->start_step();
}

std::span<const DecodedToken> ModelDecodeLoop::next(Then then) {
  if (then == Then::goes_on) slots_->start_step();
  return slots_->read_step();
}

}  // namespace paceline
