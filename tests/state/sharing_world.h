// SharingWorld runs random operations on a StateCache and on a naive cache, which tracks the
// contents of every slot and allocates blocks from plain lists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "state/state_cache.h"

namespace paceline::testing {

// A text by number: the texts of all scopes in one tree, so that equal prefixes have equal numbers.
using TextId = int32_t;

class Texts {
 public:
  TextId longer(TextId text, int32_t token) {
    const auto [found, is_new] = next_.try_emplace({text, token}, num_);
    if (is_new) {
      parents_[num_] = text;
      ++num_;
    }
    return found->second;
  }
  TextId shorter(TextId text, int64_t tokens) const {
    for (; tokens > 0; --tokens) text = parents_.at(text);
    return text;
  }
  static constexpr TextId kNumScopes = 3;

 private:
  std::map<std::pair<TextId, int32_t>, TextId> next_;
  std::map<TextId, TextId> parents_;
  TextId num_ = kNumScopes;  // the scopes are the empty texts
};

struct NaiveGroup {
  int64_t window = 0;
  std::vector<int64_t> holders;        // by block
  std::vector<BlockId> free;           // a stack
  std::vector<BlockId> cached;         // oldest first
  std::map<TextId, BlockId> block_of;  // what can be found: by the text that ends with the block
  std::map<BlockId, TextId> text_of;   // likewise
  std::set<BlockId> transient;         // findable only while held
  std::vector<TextId> content;         // by slot: the text up to the position written there
};

struct NaiveSequence {
  SequenceBlocks blocks;
  int32_t scope = 0;
  std::vector<int32_t> tokens;
  int64_t num_computed = 0;
  struct Held {
    std::vector<BlockId> table;
    int64_t first_kept = 0;
    int64_t length = 0;
  };
  std::vector<Held> groups;
  int64_t num_published = 0;
  bool publishing_ended = false;
  TextId tail = 0;  // of its last published block; 0 for none

  int64_t length() const {
    int64_t shortest = groups[0].length;
    for (const Held& held : groups) shortest = std::min(shortest, held.length);
    return shortest;
  }
};

class SharingWorld {
 public:
  SharingWorld(uint64_t seed, int64_t block_size, std::vector<CacheGroup> groups);

  // One random operation on both.
  void step();
  // ASSERTs that both are equal, and that every slot has what its sequence wrote or found.
  void check();
  int64_t num_hits() const { return num_hits_; }

 private:
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  int64_t blocks_for(int64_t length) const { return (length + block_size_ - 1) / block_size_; }
  int64_t first_seen(const NaiveGroup& group, int64_t length) const {
    return group.window == 0 ? 0 : std::max<int64_t>(0, length - group.window + 1) / block_size_;
  }
  std::vector<TextId> texts(const NaiveSequence& sequence);  // by length
  std::vector<Hash128> hashes(const NaiveSequence& sequence) const;

  void begin();
  void take_prefix(NaiveSequence& sequence);
  void compute(NaiveSequence& sequence);
  void publish(NaiveSequence& sequence);
  void pass(NaiveSequence& sequence);
  void truncate(NaiveSequence& sequence);
  void fork(const NaiveSequence& sequence);
  void clear(NaiveSequence& sequence);
  void end(size_t index);

  bool copies_last(const NaiveSequence& sequence, size_t group, int64_t length) const;
  void grow(NaiveSequence& sequence, size_t group, int64_t length, std::vector<BlockCopy>& copies);
  BlockId acquire(NaiveGroup& group);
  static void share(NaiveGroup& group, BlockId block);
  static void release(NaiveGroup& group, BlockId block);
  static void forget(NaiveGroup& group, BlockId block);
  std::set<TextId> remembered();
  void check_sequence(const NaiveSequence& sequence);

  std::mt19937_64 random_;
  int64_t block_size_;
  int64_t num_blocks_ = 0;
  Texts texts_;
  std::vector<NaiveGroup> groups_;
  StateCache cache_;
  std::vector<std::unique_ptr<NaiveSequence>> sequences_;
  std::vector<int32_t> scripts_[2];  // prompts begin as one of these
  uint64_t num_additions_ = 0;
  int64_t num_hits_ = 0;
};

}  // namespace paceline::testing
