#include "tests/state/sharing_world.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paceline::testing {

SharingWorld::SharingWorld(uint64_t seed, int64_t block_size, std::vector<CacheGroup> groups)
    : random_(seed), block_size_(block_size), cache_(block_size, groups) {
  for (const CacheGroup& group : groups) {
    NaiveGroup naive{.window = group.window};
    naive.holders.resize(static_cast<size_t>(group.num_blocks));
    naive.content.resize(static_cast<size_t>(group.num_blocks * block_size), -1);
    for (int64_t b = group.num_blocks; b-- > 0;) naive.free.push_back(static_cast<BlockId>(b));
    num_blocks_ += group.num_blocks;
    groups_.push_back(std::move(naive));
  }
  for (auto& script : scripts_) {
    for (int i = 0; i < 40; ++i) script.push_back(static_cast<int32_t>(below(2)));
  }
}

std::vector<TextId> SharingWorld::texts(const NaiveSequence& sequence) {
  std::vector<TextId> texts = {sequence.scope};
  for (const int32_t token : sequence.tokens) texts.push_back(texts_.longer(texts.back(), token));
  return texts;
}

std::vector<Hash128> SharingWorld::hashes(const NaiveSequence& sequence) const {
  const PrefixScope scopes[Texts::kNumScopes] = {
      {}, {.adapter = {.low = 1, .high = 0}}, {.salt = {.low = 0, .high = 1}}};
  std::vector<Hash128> hashes;
  Hash128 hash = cache_.prefixes().root(scopes[sequence.scope]);
  const auto size = static_cast<size_t>(block_size_);
  for (size_t end = size; end <= sequence.tokens.size(); end += size) {
    hash = cache_.prefixes().extend(hash, std::span(sequence.tokens).subspan(end - size, size));
    hashes.push_back(hash);
  }
  return hashes;
}

void SharingWorld::step() {
  if (sequences_.empty() || (below(8) == 0 && sequences_.size() < 6)) return begin();
  const auto index = static_cast<size_t>(below(static_cast<int64_t>(sequences_.size())));
  NaiveSequence& sequence = *sequences_[index];
  switch (below(20)) {
    case 0:
      return end(index);
    case 1:
      return fork(sequence);
    case 2:  // preempted and resumed
      clear(sequence);
      return take_prefix(sequence);
    case 3:
    case 4:
      return truncate(sequence);
    case 5:
    case 6:
    case 7:
      return pass(sequence);
    default:
      if (sequence.num_computed > 40) return end(index);
      compute(sequence);
      if (below(4) != 0) publish(sequence);
  }
}

void SharingWorld::begin() {
  auto sequence = std::make_unique<NaiveSequence>();
  sequence->blocks = SequenceBlocks(cache_);
  sequence->groups.resize(groups_.size());
  sequence->scope = static_cast<int32_t>(below(4) == 0 ? below(Texts::kNumScopes) : 0);
  const auto& script = scripts_[below(2)];
  sequence->tokens.assign(script.begin(), script.begin() + below(30));
  for (int64_t i = below(5); i >= 0; --i)
    sequence->tokens.push_back(static_cast<int32_t>(below(2)));
  sequences_.push_back(std::move(sequence));
  take_prefix(*sequences_.back());
}

// The texts of full blocks that are kept by a findable block or by a sequence that continues them.
std::set<TextId> SharingWorld::remembered() {
  std::set<TextId> texts;
  const auto add = [&](TextId text) {
    while (text >= Texts::kNumScopes && texts.insert(text).second)
      text = texts_.shorter(text, block_size_);
  };
  for (const NaiveGroup& group : groups_)
    for (const auto& [text, block] : group.block_of) add(text);
  for (const auto& sequence : sequences_) add(sequence->tail);
  return texts;
}

void SharingWorld::take_prefix(NaiveSequence& sequence) {
  const auto limit = below(static_cast<int64_t>(sequence.tokens.size()) + 3);
  const std::set<TextId> known = remembered();
  const std::vector<TextId> names = texts(sequence);
  const int64_t longest = std::min(limit, static_cast<int64_t>(sequence.tokens.size()));
  PrefixHit expected{.revived = std::vector<int64_t>(groups_.size())};
  for (int64_t length = block_size_; length <= longest; length += block_size_) {
    if (!known.contains(names[static_cast<size_t>(length)])) break;
    std::vector<int64_t> revived(groups_.size());
    bool usable = true;
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (int64_t i = first_seen(groups_[g], length); i < length / block_size_; ++i) {
        const auto found =
            groups_[g].block_of.find(names[static_cast<size_t>((i + 1) * block_size_)]);
        if (found == groups_[g].block_of.end()) {
          usable = false;
        } else if (groups_[g].holders[static_cast<size_t>(found->second)] == 0) {
          ++revived[g];
        }
      }
    }
    if (usable) expected = {.length = length, .revived = revived};
  }
  PrefixHit hit{.length = 3, .revived = {5}};  // of an earlier search
  const auto chain = hashes(sequence);
  cache_.find_prefix(chain, sequence.tokens, limit, hit);
  ASSERT_EQ(hit.length, expected.length);
  ASSERT_EQ(hit.revived, expected.revived);
  num_hits_ += hit.length > 0 ? 1 : 0;

  cache_.take_prefix(sequence.blocks, chain, sequence.tokens, hit.length);
  sequence.num_computed = hit.length;
  sequence.num_published = hit.length / block_size_;
  sequence.tail = hit.length > 0 ? names[static_cast<size_t>(hit.length)] : 0;
  for (size_t g = 0; g < groups_.size() && hit.length > 0; ++g) {
    auto& held = sequence.groups[g];
    held.length = hit.length;
    held.first_kept = first_seen(groups_[g], hit.length);
    held.table.assign(static_cast<size_t>(held.first_kept), kNoBlock);
    for (int64_t i = held.first_kept; i < hit.length / block_size_; ++i) {
      held.table.push_back(
          groups_[g].block_of.at(names[static_cast<size_t>((i + 1) * block_size_)]));
      share(groups_[g], held.table.back());
    }
  }
}

bool SharingWorld::copies_last(const NaiveSequence& sequence, size_t group, int64_t length) const {
  const auto& held = sequence.groups[group];
  if (length <= held.length || held.length % block_size_ == 0) return false;
  const BlockId last = held.table.back();
  return groups_[group].holders[static_cast<size_t>(last)] > 1 ||
         groups_[group].text_of.contains(last);
}

void SharingWorld::grow(NaiveSequence& sequence, size_t group, int64_t length,
                        std::vector<BlockCopy>& copies) {
  auto& held = sequence.groups[group];
  if (copies_last(sequence, group, length)) {
    const BlockId from = held.table.back();
    held.table.back() = acquire(groups_[group]);
    copies.push_back({.group = static_cast<int>(group), .from = from, .to = held.table.back()});
    release(groups_[group], from);
  }
  while (static_cast<int64_t>(held.table.size()) < blocks_for(length))
    held.table.push_back(acquire(groups_[group]));
  held.length = std::max(held.length, length);
}

// Reserves rows, copies blocks, and writes the reserved rows in every group.
void SharingWorld::compute(NaiveSequence& sequence) {
  const int64_t count = below(below(3) == 0 ? 3 * block_size_ : block_size_ + 2);
  const int64_t full = sequence.length() + count + (below(3) == 0 ? below(2 * block_size_) : 0);
  const int64_t windowed = sequence.length() + count;
  int short_group = -1;
  std::vector<int64_t> lengths, needed;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto& held = sequence.groups[g];
    lengths.push_back(std::max(held.length, groups_[g].window == 0 ? full : windowed));
    needed.push_back(blocks_for(lengths[g]) - static_cast<int64_t>(held.table.size()) +
                     (copies_last(sequence, g, lengths[g]) ? 1 : 0));
    const auto group = static_cast<int>(g);
    ASSERT_EQ(cache_.copies_last_block(sequence.blocks, group, lengths[g]),
              copies_last(sequence, g, lengths[g]));
    ASSERT_EQ(cache_.blocks_to_reserve(sequence.blocks, group, lengths[g]), needed[g]);
    const auto free = static_cast<int64_t>(groups_[g].free.size() + groups_[g].cached.size());
    if (short_group < 0 && needed[g] > free) short_group = group;
  }
  const auto out = full == windowed ? cache_.append(sequence.blocks, count)
                                    : cache_.reserve(sequence.blocks, full, windowed);
  ASSERT_EQ(out.has_value(), short_group >= 0);
  if (out) {
    ASSERT_EQ(out->group, short_group);
    ASSERT_EQ(out->needed, needed[static_cast<size_t>(short_group)]);
    return;
  }
  std::vector<BlockCopy> copies;
  for (size_t g = 0; g < groups_.size(); ++g) grow(sequence, g, lengths[g], copies);
  ASSERT_EQ(std::vector(cache_.copies().begin(), cache_.copies().end()), copies);
  cache_.clear_copies();
  for (const BlockCopy& copy : copies) {
    auto& content = groups_[static_cast<size_t>(copy.group)].content;
    std::copy_n(content.begin() + copy.from * block_size_, block_size_,
                content.begin() + copy.to * block_size_);
  }
  while (static_cast<int64_t>(sequence.tokens.size()) < sequence.length())
    sequence.tokens.push_back(static_cast<int32_t>(below(2)));
  const std::vector<TextId> names = texts(sequence);
  for (; sequence.num_computed < sequence.length(); ++sequence.num_computed) {
    const int64_t position = sequence.num_computed;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const BlockId block = sequence.groups[g].table[static_cast<size_t>(position / block_size_)];
      if (block == kNoBlock) continue;  // passed before it was computed
      groups_[g].content[static_cast<size_t>(block * block_size_ + position % block_size_)] =
          names[static_cast<size_t>(position + 1)];
    }
  }
}

void SharingWorld::publish(NaiveSequence& sequence) {
  const bool keep = below(4) != 0;
  const std::vector<TextId> names = texts(sequence);
  cache_.publish(sequence.blocks, hashes(sequence), sequence.tokens, sequence.num_computed, keep);
  const int64_t reached = sequence.blocks.num_published();
  const int64_t num_full = sequence.num_computed / block_size_;
  if (sequence.publishing_ended) {
    ASSERT_EQ(reached, sequence.num_published) << "a chain that was cut is not continued";
    return;
  }
  ASSERT_LE(reached, std::max(num_full, sequence.num_published));
  for (; sequence.num_published < reached; ++sequence.num_published) {
    const TextId name = names[static_cast<size_t>((sequence.num_published + 1) * block_size_)];
    sequence.tail = name;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const BlockId block = sequence.groups[g].table[static_cast<size_t>(sequence.num_published)];
      if (block == kNoBlock) continue;
      const auto known = groups_[g].block_of.find(name);
      if (known != groups_[g].block_of.end()) {
        if (keep) groups_[g].transient.erase(known->second);
        continue;
      }
      groups_[g].block_of[name] = block;
      groups_[g].text_of[block] = name;
      if (!keep) groups_[g].transient.insert(block);
      ++num_additions_;
    }
  }
  if (reached < num_full) {  // only for lack of room, which every block has once
    ASSERT_GE(static_cast<int64_t>(remembered().size()), num_blocks_);
    sequence.publishing_ended = true;
  }
}

void SharingWorld::pass(NaiveSequence& sequence) {
  const int64_t position = std::max<int64_t>(0, sequence.length() - below(3));
  cache_.release_outside_window(sequence.blocks, position);
  for (size_t g = 0; g < groups_.size(); ++g) {
    auto& held = sequence.groups[g];
    for (; held.first_kept < first_seen(groups_[g], position); ++held.first_kept) {
      BlockId& block = held.table[static_cast<size_t>(held.first_kept)];
      release(groups_[g], std::exchange(block, kNoBlock));
    }
  }
}

void SharingWorld::truncate(NaiveSequence& sequence) {
  const int64_t length = std::max<int64_t>(0, sequence.length() - below(2 * block_size_ + 1));
  for (size_t g = 0; g < groups_.size(); ++g)
    if (sequence.groups[g].first_kept > first_seen(groups_[g], length)) return;
  cache_.truncate(sequence.blocks, length);
  for (size_t g = 0; g < groups_.size(); ++g) {
    auto& held = sequence.groups[g];
    for (; static_cast<int64_t>(held.table.size()) > blocks_for(length); held.table.pop_back())
      release(groups_[g], held.table.back());
    held.length = length;
  }
  if (length < static_cast<int64_t>(sequence.tokens.size()))
    sequence.tokens.resize(static_cast<size_t>(length));
  sequence.num_computed = std::min(sequence.num_computed, length);
  if (sequence.num_published * block_size_ > length) sequence.publishing_ended = true;
}

void SharingWorld::fork(const NaiveSequence& sequence) {
  if (sequences_.size() == 6) return;
  for (const auto& held : sequence.groups)
    if (held.length != sequence.num_computed) return;
  auto copy = std::make_unique<NaiveSequence>();
  copy->blocks = cache_.fork(sequence.blocks);
  copy->scope = sequence.scope;
  copy->tokens = sequence.tokens;
  copy->num_computed = sequence.num_computed;
  copy->groups = sequence.groups;
  copy->num_published = sequence.num_published;
  copy->publishing_ended = sequence.publishing_ended;
  copy->tail = sequence.tail;
  for (size_t g = 0; g < groups_.size(); ++g)
    for (const BlockId block : copy->groups[g].table)
      if (block != kNoBlock) share(groups_[g], block);
  sequences_.push_back(std::move(copy));
}

void SharingWorld::clear(NaiveSequence& sequence) {
  sequence.blocks.clear();
  for (size_t g = 0; g < groups_.size(); ++g) {
    auto& held = sequence.groups[g];
    for (size_t i = held.table.size(); i-- > static_cast<size_t>(held.first_kept);)
      release(groups_[g], held.table[i]);
    held = {};
  }
  sequence.num_computed = 0;
  sequence.num_published = 0;
  sequence.publishing_ended = false;
  sequence.tail = 0;
}

void SharingWorld::end(size_t index) {
  clear(*sequences_[index]);
  sequences_.erase(sequences_.begin() + static_cast<int64_t>(index));
}

BlockId SharingWorld::acquire(NaiveGroup& group) {
  BlockId block = kNoBlock;
  if (group.free.empty()) {
    block = group.cached.front();
    group.cached.erase(group.cached.begin());
    forget(group, block);
  } else {
    block = group.free.back();
    group.free.pop_back();
  }
  group.holders[static_cast<size_t>(block)] = 1;
  return block;
}

void SharingWorld::share(NaiveGroup& group, BlockId block) {
  if (++group.holders[static_cast<size_t>(block)] == 1) std::erase(group.cached, block);
}

void SharingWorld::release(NaiveGroup& group, BlockId block) {
  if (--group.holders[static_cast<size_t>(block)] > 0) return;
  if (group.transient.contains(block)) forget(group, block);
  (group.text_of.contains(block) ? group.cached : group.free).push_back(block);
}

void SharingWorld::forget(NaiveGroup& group, BlockId block) {
  group.block_of.erase(group.text_of.at(block));
  group.text_of.erase(block);
  group.transient.erase(block);
}

void SharingWorld::check_sequence(const NaiveSequence& sequence) {
  ASSERT_EQ(sequence.blocks.length(), sequence.length());
  ASSERT_EQ(sequence.blocks.num_published(), sequence.num_published);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto& held = sequence.groups[g];
    const auto table = sequence.blocks.table(static_cast<int>(g));
    ASSERT_EQ(std::vector(table.begin(), table.end()), held.table);
    ASSERT_EQ(sequence.blocks.first_kept(static_cast<int>(g)), held.first_kept);
    ASSERT_EQ(sequence.blocks.length(static_cast<int>(g)), held.length);
    TextId own = sequence.scope;
    for (int64_t p = 0; p < sequence.num_computed; ++p) {
      own = texts_.longer(own, sequence.tokens[static_cast<size_t>(p)]);
      if (p / block_size_ < held.first_kept) continue;
      const int64_t slot = sequence.blocks.slot(static_cast<int>(g), p);
      ASSERT_EQ(groups_[g].content[static_cast<size_t>(slot)], own)
          << "position " << p << " of group " << g << " holds the keys of another text";
    }
  }
}

void SharingWorld::check() {
  std::vector<const SequenceBlocks*> live;
  for (const auto& sequence : sequences_) {
    live.push_back(&sequence->blocks);
    check_sequence(*sequence);
    if (::testing::Test::HasFailure()) return;
  }
  cache_.check_integrity(live);
  for (size_t g = 0; g < groups_.size(); ++g) {
    const BlockPool& pool = cache_.pool(static_cast<int>(g));
    ASSERT_EQ(pool.num_cached(), static_cast<int64_t>(groups_[g].cached.size()));
    ASSERT_EQ(pool.num_free() - pool.num_cached(), static_cast<int64_t>(groups_[g].free.size()));
    for (size_t b = 0; b < groups_[g].holders.size(); ++b) {
      const auto block = static_cast<BlockId>(b);
      ASSERT_EQ(pool.reference_count(block), groups_[g].holders[b]);
      ASSERT_EQ(pool.is_published(block), groups_[g].text_of.contains(block));
    }
  }
  ASSERT_EQ(cache_.prefixes().version(), num_additions_);
  ASSERT_EQ(cache_.prefixes().num_nodes(), static_cast<int64_t>(remembered().size()));
}

}  // namespace paceline::testing
