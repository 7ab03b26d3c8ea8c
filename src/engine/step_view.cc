#include "engine/step_view.h"

#include <algorithm>

#include "base/divide_up.h"
#include "runner/loaded_adapter.h"

namespace paceline {

const SchedView& StepView::build(int64_t step, const SchedLimits& limits) {
  const auto running = requests_.running();
  const auto waiting = requests_.waiting();
  const auto num_groups = static_cast<size_t>(cache_.num_groups());
  groups_.clear();
  for (int g = 0; g < cache_.num_groups(); ++g) {
    groups_.push_back({.window = cache_.group(g).window,
                       .is_recurrent = cache_.group(g).is_recurrent,
                       .num_free = cache_.pool(g).num_free(),
                       .reference_counts = cache_.pool(g).reference_counts()});
  }
  running_views_.clear();
  waiting_views_.clear();
  coming_.clear();
  adapters_.assign(1, nullptr);
  blocks_.clear();
  blocks_.reserve(running.size() * num_groups);  // running_views_ has spans of it
  num_decodes_ = 0;
  for (const auto& sequence : running) add_running(*sequence);
  view_.step = step;
  choose_waiting(limits);
  int64_t rows_left = limits.max_rows;  // later ones can't be in this step
  for (const size_t index : waiting_) {
    if (rows_left <= 0) break;
    add_waiting(*waiting[index]);
    rows_left -= waiting_views_.back().num_tokens - waiting_views_.back().prefix_length;
  }
  view_.groups = groups_;
  view_.running = running_views_;
  view_.waiting = waiting_views_;
  return view_;
}

const SchedView& StepView::without_reserves() {
  const auto num_groups = static_cast<size_t>(cache_.num_groups());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    SchedBlocks& held = blocks_[i];
    const int64_t needed = running_views_[i / num_groups].num_tokens + 1;
    const int64_t size = cache_.block_size(static_cast<int>(i % num_groups));
    const auto num_kept = static_cast<size_t>(divide_up(needed, size));
    if (held.length <= needed || held.table.size() <= num_kept) continue;
    groups_[i % num_groups].num_free += static_cast<int64_t>(held.table.size() - num_kept);
    held.table = held.table.first(num_kept);
    held.length = needed;
  }
  for (const auto& sequence : requests_.running()) {
    for (const SavedState& save : sequence->blocks.saves()) {
      ++groups_[static_cast<size_t>(save.group)].num_free;
    }
  }
  return view_;
}

void StepView::number_adapter(Sequence& sequence) {
  const auto& loaded = sequence.request().adapter;
  const AdapterWeights* const adapter = loaded != nullptr ? &loaded->weights : nullptr;
  const auto at = std::find(adapters_.begin(), adapters_.end(), adapter);
  sequence.adapter = static_cast<int32_t>(at - adapters_.begin());
  if (at == adapters_.end()) adapters_.push_back(adapter);
}

const Hash128* StepView::next_block(const Sequence& sequence, int64_t num_computed) const {
  const int64_t size = cache_.block_size();
  int64_t block = num_computed / size;
  if (cache_.has_states()) block = sequence.next_saved_state(num_computed, size) / size - 1;
  return block < std::ssize(sequence.hashes) ? &sequence.hashes[static_cast<size_t>(block)]
                                             : nullptr;
}

// Where there are states, any block of the prefix may be the one with the next state.
bool StepView::is_coming(const Sequence& sequence, int64_t begin, int64_t end) const {
  const int64_t size = cache_.block_size();
  if (!cache_.has_states()) end = std::min(end, begin + size);
  end = std::min(end / size, std::ssize(sequence.hashes));
  const auto blocks = std::span(sequence.hashes).first(static_cast<size_t>(end));
  return std::ranges::any_of(
      blocks.subspan(static_cast<size_t>(begin / size)),
      [&](const auto& one) { return std::ranges::find(coming_, one) != coming_.end(); });
}

void StepView::add_running(Sequence& sequence) {
  number_adapter(sequence);
  const size_t begin = blocks_.size();
  for (int g = 0; g < cache_.num_groups(); ++g) {
    const int64_t length = sequence.blocks.length(g);
    const auto table = sequence.blocks.table(g);
    const bool copies = cache_.copies_last_block(sequence.blocks, g, length + 1);
    blocks_.push_back({.table = table,
                       .length = length,
                       .copies_last = copies,
                       .is_published = copies && cache_.pool(g).is_published(table.back())});
  }
  running_views_.push_back({.arrival_id = sequence.arrival_id,
                            .priority = sequence.priority(),
                            .num_tokens = sequence.num_wanted(),
                            .num_computed = sequence.num_computed,
                            .num_output = sequence.num_output(),
                            .num_wished = sequence.num_wished,
                            .num_run_steps = sequence.num_run_steps,
                            .adapter = sequence.adapter,
                            .groups = std::span(blocks_).subspan(begin)});
  const bool decodes = sequence.num_wanted() - sequence.num_computed == 1;
  num_decodes_ += decodes ? 1 : 0;
  if (decodes || sequence.request().prefix.write == PrefixUse::Write::none) return;
  if (const Hash128* hash = next_block(sequence, sequence.num_computed)) coming_.push_back(*hash);
}

void StepView::choose_waiting(const SchedLimits& limits) {
  waiting_.clear();
  const auto waiting = requests_.waiting();
  const int64_t room = requests_.room();
  if (waiting.empty() || room <= 0) return;
  const auto count = std::min(waiting.size(), static_cast<size_t>(room));
  if (waiting.front()->priority() == waiting.back()->priority()) {
    for (size_t i = 0; i < count; ++i) waiting_.push_back(i);
    return;
  }
  candidates_.clear();
  for (const auto& sequence : waiting) {
    candidates_.push_back({.arrival_id = sequence->arrival_id,
                           .priority = sequence->priority(),
                           .waiting_since = sequence->waiting_since});
  }
  order_waiting(candidates_, view_.step, limits.aging_steps, order_);
  for (size_t i = 0; i < count; ++i) waiting_.push_back(static_cast<size_t>(order_[i]));
}

void StepView::add_waiting(Sequence& sequence) {
  number_adapter(sequence);
  const GenerateRequest& request = sequence.request();
  PrefixHit& hit = sequence.hit;
  hit.length = 0;
  hit.revived.assign(static_cast<size_t>(cache_.num_groups()), 0);
  bool waits = false;
  if (engine_limits_.prefix_cache && request.prefix.read && request.may_skip_rows()) {
    // The last wanted row is computed in any case, and so is every row that scores a token.
    const bool scores = request.score_from && sequence.next_scored < sequence.prompt_length;
    const int64_t limit = scores ? std::min(sequence.num_wanted() - 1, sequence.next_scored - 1)
                                 : sequence.num_wanted() - 1;
    cache_.find_prefix(sequence.hashes, sequence.tokens, limit, hit);
    if (hit.length + cache_.block_size() <= limit) {
      waits = is_coming(sequence, hit.length, limit);
      const bool writes = request.prefix.write != PrefixUse::Write::none;
      const Hash128* const next = next_block(sequence, hit.length);
      if (next != nullptr && writes && !waits) coming_.push_back(*next);
    }
  }
  waiting_views_.push_back({.arrival_id = sequence.arrival_id,
                            .priority = sequence.priority(),
                            .waiting_since = sequence.waiting_since,
                            .num_tokens = sequence.num_wanted(),
                            .is_whole = engine_limits_.bidirectional,
                            .adapter = sequence.adapter,
                            .prefix_length = hit.length,
                            .prefix_revived = hit.revived,
                            .prefix_is_coming = waits});
}

}  // namespace paceline
