// ScriptedRunner makes logits without weights: the next token is a pure function of token, position
// and adapter. It tracks the contents of each cache slot and of each state, to detect a row that
// would read a wrong key or go on from a wrong state.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/state_chunk.h"
#include "runner/decode_loop.h"
#include "runner/loaded_adapter.h"
#include "runner/runner.h"
#include "sampling/sampler.h"
#include "state/state_cache.h"
#include "tensor/memory.h"

namespace paceline::testing {

// An adapter for it: nothing but a number from 1 on.
inline std::shared_ptr<const LoadedAdapter> numbered_adapter(size_t number) {
  auto adapter = std::make_shared<LoadedAdapter>();
  adapter->name = "adapter-" + std::to_string(number);
  adapter->digest = {.low = number, .high = 7};
  adapter->weights.blocks.resize(number);
  return adapter;
}

// Fills a row of logits [vocab] for the token that follows `token` at `position`. With adapter k
// tokens are k * kAdapterStep larger.
constexpr int32_t kAdapterStep = 1000;
using Script = std::function<void(int32_t token, int32_t position, std::span<float> logits)>;

class ScriptedRunner;

// A decode loop on it: a step is run where it is started, and its tokens wait until they are read.
class ScriptedLoop : public DecodeLoop {
 public:
  explicit ScriptedLoop(ScriptedRunner& runner) : runner_(runner) {}

  int64_t max_sequences() const override { return most; }
  bool takes_adapters() const override { return adapts; }
  void start(const Batch& batch, AdapterTable adapters,
             std::span<const DecodeTerms> terms) override;
  std::span<const DecodedToken> next(Then then) override;

  int64_t most = 4;
  bool adapts = true;
  int64_t num_starts = 0;
  int64_t num_steps = 0;      // computed
  int64_t fails_at_step = 0;  // the step of this number throws

 private:
  struct SlotState {
    int32_t block = -1;  // negative: of a group without states
    int32_t open_block = 0;
    std::vector<StateSave> saves;
  };
  struct Slot {
    int32_t token = 0;
    int32_t position = 0;
    int64_t steps_left = 0;
    std::vector<int32_t> stop_ids;
    std::vector<int32_t> forbidden_ids;
    int64_t num_forbidding = 0;
    RowDraw draw;  // of the lists that follow
    std::vector<TokenCount> history;
    std::vector<std::pair<int32_t, float>> logit_bias;
    std::vector<int32_t> listed;
    std::vector<uint64_t> allowed;
    std::vector<std::vector<int32_t>> tables;  // of the groups
    int32_t adapter = 0;
    std::vector<SlotState> states = {};  // of the groups
  };

  void compute(Batch& batch);
  static SlotState state_of(const GroupBatch& group, size_t slice);
  static void add_state(const Slot& slot, size_t group, int64_t row, GroupBatch& to);
  static void add_adapter(Batch& batch, int64_t row, int32_t adapter);
  void advance(Slot& slot, const DecodedToken& token) const;
  DecodedToken draw(int64_t output, Slot& slot) const;

  ScriptedRunner& runner_;
  std::vector<Slot> slots_;
  std::vector<const AdapterWeights*> adapters_;  // by number
  std::deque<std::vector<DecodedToken>> computed_;
  std::vector<DecodedToken> read_;
};

class ScriptedRunner : public Runner {
 public:
  ScriptedRunner(int64_t vocab_size, Script script)
      : vocab_size_(vocab_size), script_(std::move(script)) {}

  // Tracks the slots of `cache` from now on.
  void watch(const StateCache* cache) {
    cache_ = cache;
    slots_.assign(static_cast<size_t>(cache->num_groups()), {});
    states_.assign(slots_.size(), {});
  }

  int64_t vocab_size() const override { return vocab_size_; }
  int64_t max_logits_rows() const override { return 4; }
  DecodeLoop* decode_loop() override { return has_loop ? &loop : nullptr; }
  int64_t block_size() const { return cache_ == nullptr ? 1 : cache_->block_size(); }
  std::span<const uint8_t> finite_rows() const override { return finite_; }

  void run(const Batch& batch, AdapterTable table) override {
    ++num_runs;
    num_rows += batch.num_rows();
    read_adapters(batch, table);
    if (cache_ != nullptr) store_and_check(batch);
    finite_.assign(static_cast<size_t>(batch.num_rows()), 1);
    for (size_t row = 0; row < finite_.size(); ++row) {
      if (is_bad && is_bad(batch.tokens[row], batch.positions[row])) finite_[row] = 0;
    }
    outputs_.clear();
    for (const int32_t row : batch.output_rows) {
      const auto at = static_cast<size_t>(row);
      outputs_.emplace_back(adapted_token(batch, at), batch.positions[at]);
    }
  }

  std::span<const float> logits(int64_t first, int64_t count) override {
    rows_.assign(static_cast<size_t>(count * vocab_size_), 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      const auto [token, position] = outputs_[static_cast<size_t>(first + i)];
      script_(token, position,
              std::span(rows_).subspan(static_cast<size_t>(i * vocab_size_),
                                       static_cast<size_t>(vocab_size_)));
    }
    return rows_;
  }

  float log_sum_exp(int64_t row) override {
    const auto width = static_cast<size_t>(vocab_size_);
    double sum = 0.0;
    for (const float logit : std::span(rows_).subspan(static_cast<size_t>(row) * width, width)) {
      sum += std::exp(static_cast<double>(logit));
    }
    return static_cast<float>(std::log(sum));
  }

  bool draws_rows() const override { return draws; }
  void draw_rows(std::span<const int64_t> outputs, std::span<const RowDraw> rows,
                 std::span<Sample> samples) override {
    ASSERT_TRUE(std::ranges::is_sorted(outputs));
    for (size_t i = 0; i < outputs.size(); ++i) samples[i] = draw_row(outputs[i], rows[i]);
    num_drawn += std::ssize(outputs);
  }

  std::span<const float> column_logits(int64_t first, int64_t count,
                                       std::span<const int32_t> columns) override {
    const std::span<const float> all = logits(first, count);
    columns_.clear();
    for (int64_t i = 0; i < count; ++i) {
      for (const int32_t column : columns)
        columns_.push_back(all[static_cast<size_t>(i * vocab_size_ + column)]);
    }
    return columns_;
  }

  // A state is its token and its position.
  int64_t hidden_size() const override { return 2; }
  void pool(const PooledOutputs& rows, std::span<double> pooled) override {
    for (int64_t i = 0; i < rows.count; ++i) {
      const auto [token, position] = outputs_[static_cast<size_t>(rows.first + i)];
      EXPECT_EQ(position, rows.first_position + i);
      const double weight = rows.how == RowPooling::weighted_sum ? position + 1.0 : 1.0;
      const double state[] = {static_cast<double>(token), static_cast<double>(position)};
      for (size_t k = 0; k < 2; ++k) {
        pooled[k] = rows.how == RowPooling::max ? std::max(pooled[k], state[k])
                                                : pooled[k] + weight * state[k];
      }
    }
  }
  std::span<const float> finish_pooled(std::span<const float> pooled, int64_t /*count*/) override {
    return pooled;
  }

  // The adapter of a row of the last run; 0: none.
  int32_t row_adapter(int64_t row) const { return row_adapters_[static_cast<size_t>(row)]; }

  bool has_loop = false;  // for engines made from now on
  ScriptedLoop loop{*this};
  bool draws = false;     // tokens, as a GPU does
  int64_t num_drawn = 0;  // tokens
  int64_t num_runs = 0;
  int64_t num_rows = 0;
  std::vector<AdapterRows> adapters;                            // of the last run
  int64_t most_adapters = 0;                                    // different ones in a run
  std::function<bool(int32_t token, int32_t position)> is_bad;  // a row whose state isn't finite
  // Called for each row and group with the digest of all the tokens whose keys it builds on, and of
  // its own.
  std::function<void(int64_t position, uint64_t digest)> on_row;

  static uint64_t digest_of(std::span<const int32_t> tokens) {
    uint64_t digest = 0;
    for (const int32_t token : tokens) digest = mix(digest, token);
    return digest;
  }

 private:
  struct Stored {
    int32_t token = -1;
    int32_t position = -1;
    int32_t adapter = 0;
    uint64_t chain = 0;  // a digest of all tokens up to it
  };
  using Slots = std::map<int64_t, Stored>;
  // The state before the chunk that is open.
  struct State {
    int64_t begin = -1;
    int32_t adapter = 0;
    uint64_t chain = 0;  // a digest of all tokens below `begin`
  };
  // What the rows of that chunk leave.
  struct OpenRows {
    int64_t begin = -1;
    std::vector<uint64_t> chains;  // digests of all tokens up to each row
  };

  Sample draw_row(int64_t output, const RowDraw& row) {
    LogitsRow logits{.logits = this->logits(output, 1), .allowed = row.allowed};
    if (row.wants_logprob) logits.log_sum_exp = log_sum_exp(0);
    SamplingOptions options{row};  // its numbers
    options.logit_bias.assign(row.logit_bias.begin(), row.logit_bias.end());
    options.logprob_token_ids.assign(row.logprob_token_ids.begin(), row.logprob_token_ids.end());
    TokenHistory history;
    for (const auto [id, in_output] : row.history) {
      history.add_prompt({&id, 1});
      for (int32_t i = 0; i < in_output; ++i) history.add_output(id);
    }
    if (!sampler_) sampler_.emplace(memory_, vocab_size_);
    return row.forced ? sampler_->chosen(logits, options, *row.forced)
                      : sampler_->draw(logits, options, history, row.position);
  }

  static uint64_t mix(uint64_t chain, int32_t token) {
    return (chain ^ static_cast<uint64_t>(token + 1)) * 0x9E3779B97F4A7C15u + 1;
  }

  // Segments are in order and apart, and neighbours have different adapters.
  void read_adapters(const Batch& batch, AdapterTable table) {
    adapters = batch.adapters;
    row_adapters_.assign(static_cast<size_t>(batch.num_rows()), 0);
    std::set<const AdapterWeights*> different;
    const AdapterRows* before = nullptr;
    for (const AdapterRows& rows : adapters) {
      const int64_t end = before == nullptr ? 0 : before->first_row + before->num_rows;
      ASSERT_GE(rows.first_row, end);
      ASSERT_GT(rows.num_rows, 0);
      ASSERT_LE(rows.first_row + rows.num_rows, batch.num_rows());
      if (before != nullptr && rows.first_row == end) {
        ASSERT_NE(rows.adapter, before->adapter);
      }
      const AdapterWeights& weights = *table[static_cast<size_t>(rows.adapter)];
      for (int64_t i = 0; i < rows.num_rows; ++i) {
        row_adapters_[static_cast<size_t>(rows.first_row + i)] =
            static_cast<int32_t>(weights.blocks.size());
      }
      different.insert(&weights);
      before = &rows;
    }
    most_adapters = std::max(most_adapters, std::ssize(different));
  }
  int32_t adapted_token(const Batch& batch, size_t row) const {
    return batch.tokens[row] + kAdapterStep * row_adapters_[row];
  }

  // Stores every row with a digest of the positions before it, read through its block table. Each
  // position must be stored, unless it is outside the window, and continue the one before it.
  void store_and_check(const Batch& batch) {
    const int64_t block_size = cache_->block_size();
    for (size_t g = 0; g < slots_.size(); ++g) {
      if (cache_->group(static_cast<int>(g)).is_recurrent) {
        if (cache_->holds_states(static_cast<int>(g))) advance_states(batch, g);
        continue;
      }
      Slots& slots = slots_[g];
      check_slices(batch, batch.groups[g]);
      if (::testing::Test::HasFatalFailure()) return;
      for (const BlockMove& move : batch.groups[g].copies) {
        for (int64_t i = 0; i < block_size; ++i) {
          slots[move.to * block_size + i] = slots[move.from * block_size + i];
        }
      }
      for (const AttentionSlice& slice : batch.groups[g].slices) {
        for (int64_t i = 0; i < slice.num_rows; ++i) {
          store_row(batch, static_cast<int>(g), slice, i);
        }
      }
    }
  }

  void advance_states(const Batch& batch, size_t g) {
    const GroupBatch& group = batch.groups[g];
    auto& states = states_[g];
    for (const BlockMove& move : group.copies) states[move.to] = states[move.from];
    for (const BlockMove& move : batch.groups[static_cast<size_t>(*cache_->open_group())].copies) {
      open_rows_[move.to] = open_rows_[move.from];
    }
    std::set<int32_t> open_blocks;
    for (const StateSlice& slice : group.states) {
      ASSERT_TRUE(open_blocks.insert(slice.open_block).second) << "two sequences' open rows";
      advance_state(batch, slice, std::span(group.saves), states);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  // The blocks must have the state of the sequence's rows so far, and those of its open chunk,
  // which may be computed anew.
  void advance_state(const Batch& batch, const StateSlice& slice,
                     std::span<const StateSave> all_saves, std::map<int32_t, State>& states) {
    const auto first_row = static_cast<size_t>(slice.first_row);
    const int64_t first = slice.first_position;
    State state =
        first == 0 ? State{.begin = 0, .adapter = row_adapters_[first_row]} : states[slice.block];
    OpenRows open = first % kStateChunk == 0 ? OpenRows{.begin = first, .chains = {}}
                                             : open_rows_[slice.open_block];
    ASSERT_EQ(state.begin, first / kStateChunk * kStateChunk) << "the state of another position";
    ASSERT_EQ(state.adapter, row_adapters_[first_row]) << "another adapter's state";
    ASSERT_EQ(open.begin, state.begin) << "the rows of another chunk";
    ASSERT_GE(std::ssize(open.chains), first - state.begin) << "rows of the chunk are missing";
    open.chains.resize(static_cast<size_t>(first - state.begin));
    auto saves = all_saves.subspan(static_cast<size_t>(slice.first_save),
                                   static_cast<size_t>(slice.num_saves));
    for (int64_t i = 0; i < slice.num_rows; ++i) {
      const size_t row = first_row + static_cast<size_t>(i);
      ASSERT_EQ(batch.positions[row], first + i);
      const uint64_t before = open.chains.empty() ? state.chain : open.chains.back();
      open.chains.push_back(mix(before, batch.tokens[row]));
      ASSERT_EQ(open.chains.back(), chain_of_slot(batch, row)) << "another sequence's state";
      const int64_t end = first + i + 1;
      if (end % kStateChunk != 0) continue;
      state.begin = end;
      state.chain = open.chains.back();
      open = {.begin = end, .chains = {}};
      for (; !saves.empty() && saves.front().position == end; saves = saves.subspan(1)) {
        ASSERT_NE(saves.front().block, slice.block);
        states[saves.front().block] = state;
      }
    }
    ASSERT_TRUE(saves.empty()) << "a state is to be saved where none is";
    states[slice.block] = state;
    open_rows_[slice.open_block] = std::move(open);
  }

  // Of all tokens up to a row's own, as a group before the states, without a window, has stored it.
  uint64_t chain_of_slot(const Batch& batch, size_t row) {
    EXPECT_EQ(cache_->group(0).window, 0);
    return slots_[0][batch.groups[0].slots[row]].chain;
  }

  // The slices must have every row once, in order, at the positions of the rows.
  static void check_slices(const Batch& batch, const GroupBatch& group) {
    ASSERT_EQ(std::ssize(batch.positions), batch.num_rows());
    ASSERT_EQ(std::ssize(group.slots), batch.num_rows());
    int64_t row = 0;
    for (const AttentionSlice& slice : group.slices) {
      ASSERT_EQ(slice.first_row, row);
      for (int64_t i = 0; i < slice.num_rows; ++i, ++row) {
        ASSERT_EQ(batch.positions[static_cast<size_t>(row)], slice.first_position + i);
      }
    }
    ASSERT_EQ(row, batch.num_rows());
  }

  void store_row(const Batch& batch, int g, const AttentionSlice& slice, int64_t i) {
    const int64_t block_size = cache_->block_size();
    Slots& slots = slots_[static_cast<size_t>(g)];
    const int64_t position = slice.first_position + i;
    const auto row = static_cast<size_t>(slice.first_row + i);
    const int64_t window = cache_->group(g).window;
    const int64_t first_seen = window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
    uint64_t chain = 0;
    for (int64_t p = first_seen; p < position; ++p) {
      const int32_t block = slice.block_table[static_cast<size_t>(p / block_size)];
      ASSERT_GE(block, 0) << "position " << position << " wants " << p << ", which is gone";
      const Stored& stored = slots[block * block_size + p % block_size];
      ASSERT_EQ(stored.position, p) << "another position's key";
      ASSERT_EQ(stored.adapter, row_adapters_[row]) << "another adapter's key";
      if (p > first_seen) {
        ASSERT_EQ(stored.chain, mix(chain, stored.token)) << "another sequence's key";
      }
      chain = stored.chain;
    }
    chain = mix(chain, batch.tokens[row]);
    slots[batch.groups[static_cast<size_t>(g)].slots[row]] = {
        .token = batch.tokens[row],
        .position = static_cast<int32_t>(position),
        .adapter = row_adapters_[row],
        .chain = chain};
    if (on_row) on_row(position, chain);
  }

  int64_t vocab_size_;
  Script script_;
  Memory memory_;
  std::optional<Sampler> sampler_;
  const StateCache* cache_ = nullptr;
  std::vector<Slots> slots_;                      // per group
  std::vector<std::map<int32_t, State>> states_;  // per group, by block
  std::map<int32_t, OpenRows> open_rows_;         // by block
  std::vector<std::pair<int32_t, int32_t>> outputs_;
  std::vector<int32_t> row_adapters_;  // numbers; 0: none
  std::vector<uint8_t> finite_;
  std::vector<float> rows_;
  std::vector<float> columns_;
};

inline void ScriptedLoop::start(const Batch& batch, AdapterTable adapters,
                                std::span<const DecodeTerms> terms) {
  ASSERT_EQ(std::ssize(terms), batch.num_rows());
  ASSERT_EQ(batch.num_outputs(), batch.num_rows());
  ASSERT_LE(batch.num_rows(), most);
  ASSERT_TRUE(batch.stretched.empty());
  ++num_starts;
  slots_.clear();
  computed_.clear();
  adapters_.assign(adapters.begin(), adapters.end());
  for (size_t i = 0; i < terms.size(); ++i) {
    slots_.push_back(
        {.token = batch.tokens[i],
         .position = batch.positions[i],
         .steps_left = terms[i].num_steps,
         .stop_ids = {terms[i].stop_ids.begin(), terms[i].stop_ids.end()},
         .forbidden_ids = {terms[i].forbidden_ids.begin(), terms[i].forbidden_ids.end()},
         .num_forbidding = terms[i].num_forbidding,
         .draw = terms[i].draw,
         .history = {terms[i].draw.history.begin(), terms[i].draw.history.end()},
         .logit_bias = {terms[i].draw.logit_bias.begin(), terms[i].draw.logit_bias.end()},
         .listed = {terms[i].draw.logprob_token_ids.begin(), terms[i].draw.logprob_token_ids.end()},
         .allowed = {terms[i].draw.allowed.begin(), terms[i].draw.allowed.end()},
         .tables = {}});
    for (const GroupBatch& group : batch.groups) {
      slots_.back().states.push_back(state_of(group, i));
      auto& table = slots_.back().tables.emplace_back();
      if (group.slices.empty()) continue;  // states, or their open rows
      const auto blocks = group.slices[i].block_table;
      table.assign(blocks.begin(), blocks.end());
    }
  }
  for (const AdapterRows& rows : batch.adapters) {
    for (int64_t i = 0; i < rows.num_rows; ++i) {
      slots_[static_cast<size_t>(rows.first_row + i)].adapter = rows.adapter;
    }
  }
  Batch first;
  for (const GroupBatch& group : batch.groups) {
    first.groups.push_back({.slots = {}, .slices = {}, .copies = group.copies});
  }
  compute(first);
}

inline std::span<const DecodedToken> ScriptedLoop::next(Then then) {
  if (then == Then::goes_on) {
    Batch batch;
    if (!slots_.empty()) batch.groups.resize(slots_[0].tables.size());
    compute(batch);
  }
  if (computed_.empty()) {
    ADD_FAILURE() << "a step that was not started";
    return {};
  }
  read_ = std::move(computed_.front());
  computed_.pop_front();
  return read_;
}

// Neighbours share a range.
inline void ScriptedLoop::add_adapter(Batch& batch, int64_t row, int32_t adapter) {
  if (adapter == 0) return;
  if (!batch.adapters.empty()) {
    AdapterRows& last = batch.adapters.back();
    if (last.adapter == adapter && last.first_row + last.num_rows == row) {
      ++last.num_rows;
      return;
    }
  }
  batch.adapters.push_back({.first_row = row, .num_rows = 1, .adapter = adapter});
}

inline ScriptedLoop::SlotState ScriptedLoop::state_of(const GroupBatch& group, size_t slice) {
  if (group.states.empty()) return {};
  const StateSlice& state = group.states[slice];
  const auto saves = StateSlices{group.states, group.saves}.saves_of(state);
  return {
      .block = state.block, .open_block = state.open_block, .saves = {saves.begin(), saves.end()}};
}

inline void ScriptedLoop::add_state(const Slot& slot, size_t group, int64_t row, GroupBatch& to) {
  to.states.push_back({.first_row = row,
                       .num_rows = 1,
                       .first_position = slot.position,
                       .block = slot.states[group].block,
                       .open_block = slot.states[group].open_block,
                       .first_save = std::ssize(to.saves)});
  for (const StateSave& save : slot.states[group].saves) {
    if (save.position != slot.position + 1) continue;
    to.saves.push_back(save);
    ++to.states.back().num_saves;
  }
}

// The batch has the step's copies of blocks.
inline void ScriptedLoop::compute(Batch& batch) {
  if (++num_steps == fails_at_step) throw Error(ErrorCode::internal, "the loop fails");
  const int64_t block_size = runner_.block_size();
  std::vector<size_t> live;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.steps_left == 0) continue;
    const auto row = static_cast<int64_t>(live.size());
    live.push_back(i);
    batch.tokens.push_back(slot.token);
    batch.positions.push_back(slot.position);
    batch.output_rows.push_back(static_cast<int32_t>(row));
    add_adapter(batch, row, slot.adapter);
    for (size_t g = 0; g < slot.tables.size(); ++g) {
      if (slot.states[g].block >= 0) {
        add_state(slot, g, row, batch.groups[g]);
        continue;
      }
      if (slot.tables[g].empty()) continue;  // open rows
      const auto block = static_cast<size_t>(slot.position / block_size);
      ASSERT_LT(block, slot.tables[g].size()) << "no slot is reserved for the step";
      batch.groups[g].slots.push_back(slot.tables[g][block] * block_size +
                                      slot.position % block_size);
      batch.groups[g].slices.push_back({.first_row = row,
                                        .num_rows = 1,
                                        .first_position = slot.position,
                                        .block_table = slot.tables[g]});
    }
  }
  std::vector<DecodedToken> tokens(slots_.size());
  if (!live.empty()) runner_.run(batch, adapters_);
  for (size_t row = 0; row < live.size(); ++row) {
    Slot& slot = slots_[live[row]];
    DecodedToken& token = tokens[live[row]];
    token = draw(static_cast<int64_t>(row), slot);
    if (runner_.finite_rows()[row] == 0) token = {.status = DecodedToken::Status::bad_state};
    advance(slot, token);
  }
  computed_.push_back(std::move(tokens));
}

inline DecodedToken ScriptedLoop::draw(int64_t output, Slot& slot) const {
  slot.draw.position = slot.position + 1;
  slot.draw.history = slot.history;
  auto biases = slot.logit_bias;
  if (slot.num_forbidding > 0) {
    for (const int32_t id : slot.forbidden_ids) {
      biases.emplace_back(id, -std::numeric_limits<float>::infinity());
    }
  }
  slot.draw.logit_bias = biases;
  slot.draw.logprob_token_ids = slot.listed;
  slot.draw.allowed = slot.allowed;
  Sample sample;
  runner_.draw_rows({&output, 1}, {&slot.draw, 1}, {&sample, 1});
  DecodedToken token{.status = static_cast<DecodedToken::Status>(sample.status),
                     .id = sample.id,
                     .logprob = sample.logprob,
                     .top_logprobs = std::move(sample.top_logprobs)};
  if (token.status != DecodedToken::Status::ok || slot.history.empty()) return token;
  const auto known = std::ranges::find(slot.history, token.id, &TokenCount::id);
  if (known != slot.history.end()) {
    ++known->in_output;
  } else {
    slot.history.push_back({.id = token.id, .in_output = 1});
  }
  return token;
}

inline void ScriptedLoop::advance(Slot& slot, const DecodedToken& token) const {
  slot.token = token.id;
  ++slot.position;
  --slot.steps_left;
  --slot.num_forbidding;
  const bool stops =
      std::find(slot.stop_ids.begin(), slot.stop_ids.end(), token.id) != slot.stop_ids.end();
  if (stops || token.status != DecodedToken::Status::ok) slot.steps_left = 0;
}

}  // namespace paceline::testing
