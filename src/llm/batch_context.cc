#include "paceline/batch_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "engine/adapter_set.h"
#include "engine/engine.h"
#include "load/load_adapter.h"
#include "load/loaded_model.h"
#include "runner/batch_builder.h"
#include "runner/loaded_adapter.h"
#include "runner/model_runner.h"

namespace paceline {
namespace {

struct ContextSequence {
  SequenceBlocks blocks;
  int64_t length = 0;
  int64_t stretched = 0;  // Runner::stretched_length
  AdapterSet::Handle adapter = nullptr;
  bool is_broken = false;  // some of its numbers aren't finite
};

// Consecutive tokens of one sequence in a step.
struct ContextSlice {
  BatchContext::SequenceId id = 0;
  std::span<const int32_t> ids;
};

}  // namespace

struct BatchContext::State {
  std::unique_ptr<LoadedModel> model;
  int64_t max_sequences = 0;
  int64_t max_chunk = 0;   // rows of a step
  int64_t max_blocks = 0;  // of groups that keep every position
  std::map<SequenceId, ContextSequence> sequences;
  SequenceId next_id = 0;
  BatchBuilder builder;

  State(std::unique_ptr<LoadedModel> loaded, const LoadOptions& options, int64_t num_tokens);

  StateCache& cache() const { return *model->cache; }
  ModelRunner& runner() const { return *model->runner; }
  ContextSequence& find(SequenceId id);
  bool keeps_all(int group) const;
  int64_t free_blocks(int group) const;
  int64_t blocks_needed(const ContextSequence& sequence, int group, int64_t count,
                        int64_t chunk) const;
  // Throws Error for slices that can't be computed in steps of `chunk` rows of each.
  void check(std::span<const ContextSlice> slices, int64_t chunk);
  void check_room(std::span<const ContextSlice> slices, int64_t chunk) const;
  int32_t number_of(const AdapterSet::Handle& adapter, std::vector<const AdapterWeights*>& table);
  // Computes checked slices in one step; `outputs` are rows of it.
  void step(std::span<const ContextSlice> slices, std::span<const int64_t> outputs);
  void reserve(ContextSequence& sequence, int64_t count);
  void advance(std::span<const ContextSlice> slices);
  // Those of the last step's outputs.
  void read_logits(std::span<float> logits);
};

BatchContext::State::State(std::unique_ptr<LoadedModel> loaded, const LoadOptions& options,
                           int64_t num_tokens)
    : model(std::move(loaded)),
      max_sequences(options.max_num_seqs),
      max_chunk(model->engine->limits().max_batched_tokens),
      builder(*model->cache) {
  const int64_t block = cache().block_size();
  max_blocks = (num_tokens + block - 1) / block;
  for (int group = 0; group < cache().num_groups(); ++group) {
    const int64_t available = cache().group(group).num_blocks;
    if (!keeps_all(group) || available >= max_blocks) continue;
    throw Error(ErrorCode::exhausted,
                fmt::format("context of {} tokens: --kv-cache-memory-bytes, the key/value cache, "
                            "holds {}",
                            num_tokens, available * block));
  }
}

bool BatchContext::State::keeps_all(int group) const {
  return cache().group(group).window == 0 && !cache().group(group).is_recurrent;
}

ContextSequence& BatchContext::State::find(SequenceId id) {
  const auto found = sequences.find(id);
  if (found != sequences.end()) return found->second;
  throw Error(ErrorCode::invalid, fmt::format("sequence {}: the context has none of this id", id));
}

int64_t BatchContext::State::free_blocks(int group) const {
  const BlockPool& pool = cache().pool(group);
  if (!keeps_all(group)) return pool.num_free();
  return std::min(pool.num_free(), max_blocks - (pool.num_blocks() - pool.num_free()));
}

// At most, while it grows by `count` in steps of `chunk`.
int64_t BatchContext::State::blocks_needed(const ContextSequence& sequence, int group,
                                           int64_t count, int64_t chunk) const {
  const int64_t length = sequence.length + count;
  const int64_t copied = cache().copies_last_block(sequence.blocks, group, length) ? 1 : 0;
  const int64_t needed = cache().blocks_to_reserve(sequence.blocks, group, length) + copied;
  const int64_t window = cache().group(group).window;
  if (window == 0 || cache().group(group).is_recurrent) return needed;
  const int64_t most = StateCache::blocks_for_window(window, chunk, cache().block_size());
  return std::min(needed, std::max<int64_t>(most - sequence.blocks.num_kept(group), 0) + copied);
}

void BatchContext::State::check_room(std::span<const ContextSlice> slices, int64_t chunk) const {
  for (int group = 0; group < cache().num_groups(); ++group) {
    int64_t needed = 0;
    for (const ContextSlice& slice : slices) {
      needed += blocks_needed(sequences.at(slice.id), group, std::ssize(slice.ids), chunk);
    }
    if (needed <= free_blocks(group)) continue;
    throw Error(ErrorCode::exhausted,
                fmt::format("sequence {}: {} more tokens need {} blocks of {}, {} are free; free "
                            "other sequences",
                            slices.front().id, slices.front().ids.size(), needed,
                            cache().block_size(), free_blocks(group)));
  }
}

void BatchContext::State::check(std::span<const ContextSlice> slices, int64_t chunk) {
  std::vector<SequenceId> ids;
  for (const ContextSlice& slice : slices) {
    const ContextSequence& sequence = find(slice.id);
    if (sequence.is_broken) {
      throw Error(ErrorCode::numerical,
                  fmt::format("sequence {}: its numbers aren't finite; free it", slice.id));
    }
    const int64_t longest = model->engine->limits().max_model_len;
    if (std::ssize(slice.ids) > longest - sequence.length) {
      throw Error(ErrorCode::exhausted,
                  fmt::format("sequence {}: {} tokens and {} more, the context has {}", slice.id,
                              sequence.length, slice.ids.size(), longest));
    }
    for (const int32_t token : slice.ids) {
      if (token >= 0 && token < runner().vocab_size()) continue;
      throw Error(ErrorCode::invalid, fmt::format("sequence {}: token {}, expected 0 to {}",
                                                  slice.id, token, runner().vocab_size() - 1));
    }
    ids.push_back(slice.id);
  }
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
    throw Error(ErrorCode::invalid, "entries: a sequence is there twice, expected one token each");
  }
  check_room(slices, chunk);
}

void BatchContext::State::reserve(ContextSequence& sequence, int64_t count) {
  cache().release_outside_window(sequence.blocks, sequence.length);
  const auto missing = cache().append(sequence.blocks, count);
  PL_CHECK(!missing, "the blocks were counted");
}

// Neighbours of one adapter are one segment, so the order of the slices matters for speed alone.
int32_t BatchContext::State::number_of(const AdapterSet::Handle& adapter,
                                       std::vector<const AdapterWeights*>& table) {
  const AdapterWeights* const weights = adapter == nullptr ? nullptr : &adapter->weights;
  const auto found = std::find(table.begin(), table.end(), weights);
  const auto number = static_cast<int32_t>(found - table.begin());
  if (found == table.end()) table.push_back(weights);
  return number;
}

void BatchContext::State::step(std::span<const ContextSlice> slices,
                               std::span<const int64_t> outputs) {
  cache().clear_copies();
  for (const ContextSlice& slice : slices) reserve(find(slice.id), std::ssize(slice.ids));
  std::vector<const AdapterWeights*> adapters = {nullptr};
  builder.clear();
  for (const ContextSlice& slice : slices) {
    ContextSequence& sequence = find(slice.id);
    builder.add({.tokens = slice.ids,
                 .first_position = sequence.length,
                 .blocks = sequence.blocks,
                 .adapter = number_of(sequence.adapter, adapters),
                 .stretched = sequence.stretched});
  }
  builder.add_copies();
  for (const int64_t output : outputs) builder.add_output(output);
  runner().run(builder.batch(), adapters);
  advance(slices);
}

void BatchContext::State::advance(std::span<const ContextSlice> slices) {
  size_t row = 0;
  SequenceId broken = -1;
  for (const ContextSlice& slice : slices) {
    ContextSequence& sequence = find(slice.id);
    sequence.length += std::ssize(slice.ids);
    const auto finite = runner().finite_rows().subspan(row, slice.ids.size());
    row += slice.ids.size();
    sequence.is_broken = std::find(finite.begin(), finite.end(), 0) != finite.end();
    if (sequence.is_broken) broken = slice.id;
  }
  if (broken < 0) return;
  throw Error(ErrorCode::numerical,
              fmt::format("sequence {}: the model computed NaN or an infinity", broken));
}

void BatchContext::State::read_logits(std::span<float> logits) {
  const int64_t vocab = runner().vocab_size();
  const int64_t count = std::ssize(logits) / vocab;
  for (int64_t first = 0; first < count; first += runner().max_logits_rows()) {
    const int64_t part = std::min(runner().max_logits_rows(), count - first);
    const auto found = runner().logits(first, part);
    std::copy(found.begin(), found.end(), logits.begin() + first * vocab);
  }
}

BatchContext::BatchContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
BatchContext::BatchContext(BatchContext&&) noexcept = default;
BatchContext& BatchContext::operator=(BatchContext&&) noexcept = default;
BatchContext::~BatchContext() = default;

BatchContext BatchContext::load(const LoadOptions& options, int64_t num_tokens) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (num_tokens < 1 || num_tokens > kMost) {
    throw Error(ErrorCode::invalid,
                fmt::format("context of {} tokens: expected 1 to {}", num_tokens, kMost));
  }
  if (options.backend != "native") {
    throw Error(ErrorCode::unsupported,
                fmt::format("backend: found \"{}\", but a batch context runs on native alone",
                            options.backend));
  }
  LoadOptions its_options = options;
  its_options.speculative_method = DraftMethod::automatic;
  its_options.speculative_model = {};
  its_options.speculative_config = {};
  return BatchContext(std::make_unique<State>(load_model(its_options), its_options, num_tokens));
}

int64_t BatchContext::vocab_size() const { return state_->runner().vocab_size(); }
int64_t BatchContext::max_length() const { return state_->model->engine->limits().max_model_len; }

int64_t BatchContext::room() const {
  int64_t blocks = state_->max_blocks;
  for (int group = 0; group < state_->cache().num_groups(); ++group) {
    if (state_->keeps_all(group)) blocks = std::min(blocks, state_->free_blocks(group));
  }
  return blocks * state_->cache().block_size();
}

BatchContext::SequenceId BatchContext::create(int64_t longest, const std::string& lora) {
  if (longest < 0 || longest > max_length()) {
    throw Error(ErrorCode::invalid,
                fmt::format("longest: {}, expected 0 to {}", longest, max_length()));
  }
  if (std::ssize(state_->sequences) >= state_->max_sequences) {
    throw Error(ErrorCode::exhausted,
                fmt::format("the context has {} sequences, as many as --max-num-seqs allows; free "
                            "one first",
                            state_->max_sequences));
  }
  ContextSequence sequence{.blocks = SequenceBlocks(state_->cache())};
  sequence.stretched = state_->runner().stretched_length(longest == 0 ? max_length() : longest);
  if (!lora.empty()) {
    const AdapterSet* adapters = state_->model->adapters.get();
    if (adapters != nullptr) sequence.adapter = adapters->find(lora);
    if (sequence.adapter == nullptr) {
      throw Error(ErrorCode::not_found,
                  fmt::format("adapter {}: the context has none of this name", lora));
    }
  }
  state_->sequences.emplace(state_->next_id, std::move(sequence));
  return state_->next_id++;
}

BatchContext::SequenceId BatchContext::fork(SequenceId sequence) {
  const SequenceId forked = create();
  ContextSequence& to = state_->find(forked);
  try {
    const ContextSequence& from = state_->find(sequence);
    to.blocks = state_->cache().fork(from.blocks);
    to.length = from.length;
    to.stretched = from.stretched;
    to.adapter = from.adapter;
    to.is_broken = from.is_broken;
  } catch (const Error&) {
    free(forked);
    throw;
  }
  return forked;
}

void BatchContext::free(SequenceId sequence) {
  state_->find(sequence);
  state_->sequences.erase(sequence);
}

int64_t BatchContext::length(SequenceId sequence) const { return state_->find(sequence).length; }

void BatchContext::prefill(SequenceId sequence, std::span<const int32_t> ids, int64_t chunk,
                           std::span<const size_t> rows, std::span<float> logits) {
  const auto vocab = static_cast<size_t>(vocab_size());
  if (ids.empty()) throw Error(ErrorCode::invalid, "ids: found none, expected tokens to append");
  if (chunk < 0)
    throw Error(ErrorCode::invalid, fmt::format("chunk: {}, expected 0 or more", chunk));
  if (!std::is_sorted(rows.begin(), rows.end()) || (!rows.empty() && rows.back() >= ids.size())) {
    throw Error(ErrorCode::invalid,
                fmt::format("rows: expected ascending indices below {}", ids.size()));
  }
  if (logits.size() != rows.size() * vocab) {
    throw Error(ErrorCode::invalid,
                fmt::format("logits: room for {} numbers, expected {} rows of {}", logits.size(),
                            rows.size(), vocab));
  }
  const int64_t step = chunk == 0 ? state_->max_chunk : std::min(chunk, state_->max_chunk);
  const ContextSlice whole{.id = sequence, .ids = ids};
  state_->check({&whole, 1}, step);
  size_t done = 0, num_read = 0;
  std::vector<int64_t> outputs;
  while (done < ids.size()) {
    const size_t count = std::min(ids.size() - done, static_cast<size_t>(step));
    outputs.clear();
    while (num_read + outputs.size() < rows.size() &&
           rows[num_read + outputs.size()] < done + count) {
      outputs.push_back(static_cast<int64_t>(rows[num_read + outputs.size()] - done));
    }
    const ContextSlice slice{.id = sequence, .ids = ids.subspan(done, count)};
    state_->step({&slice, 1}, outputs);
    state_->read_logits(logits.subspan(num_read * vocab, outputs.size() * vocab));
    num_read += outputs.size();
    done += count;
  }
}

void BatchContext::decode_batch(std::span<const Entry> entries, std::span<float> logits) {
  const auto vocab = static_cast<size_t>(vocab_size());
  if (entries.empty()) return;
  if (std::ssize(entries) > state_->max_chunk) {
    throw Error(ErrorCode::invalid, fmt::format("entries: found {}, a step has at most {} rows",
                                                entries.size(), state_->max_chunk));
  }
  if (!logits.empty() && logits.size() != entries.size() * vocab) {
    throw Error(ErrorCode::invalid,
                fmt::format("logits: room for {} numbers, expected {} rows of {}", logits.size(),
                            entries.size(), vocab));
  }
  std::vector<ContextSlice> slices;
  std::vector<int64_t> outputs;
  for (const Entry& entry : entries) {
    if (!logits.empty()) outputs.push_back(std::ssize(slices));
    slices.push_back({.id = entry.sequence, .ids = {&entry.token, 1}});
  }
  state_->check(slices, 1);
  state_->step(slices, outputs);
  state_->read_logits(logits);
}

}  // namespace paceline
