// Random operations on a StateCache against a naive model that remembers one slot per position.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "state/state_cache.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

// What a sequence must hold: per group the positions whose block is held, and the slot each was
// given.
struct ModelSequence {
  SequenceBlocks blocks;
  int64_t length = 0;
  std::vector<int64_t> first_held;                // per group, a multiple of the block size
  std::vector<std::map<int64_t, int64_t>> slots;  // per group: position -> slot
};

class Model {
 public:
  Model(int64_t block_size, std::vector<CacheGroup> groups)
      : block_size_(block_size), groups_(groups), cache_(block_size, groups) {}

  size_t num_sequences() const { return sequences_.size(); }

  void begin() {
    auto sequence = std::make_unique<ModelSequence>();
    sequence->blocks = SequenceBlocks(cache_);
    sequence->first_held.assign(groups_.size(), 0);
    sequence->slots.resize(groups_.size());
    sequences_.push_back(std::move(sequence));
  }

  void end(size_t index) { sequences_.erase(sequences_.begin() + static_cast<int64_t>(index)); }

  // The expected answer comes from counting positions, block by block.
  void append(size_t index, int64_t count) {
    ModelSequence& sequence = *sequences_[index];
    int64_t needed = 0;
    for (int64_t p = sequence.length; p < sequence.length + count; ++p)
      needed += p % block_size_ == 0;
    int short_group = -1;
    for (size_t g = groups_.size(); g-- > 0;)
      if (num_free(g) < needed) short_group = static_cast<int>(g);

    const auto out = cache_.append(sequence.blocks, count);
    ASSERT_EQ(out.has_value(), short_group >= 0);
    if (out) {
      EXPECT_EQ(out->group, short_group);
      EXPECT_EQ(out->needed, needed);
      EXPECT_EQ(out->free, num_free(static_cast<size_t>(short_group)));
      return;
    }
    for (int64_t p = sequence.length; p < sequence.length + count; ++p)
      for (size_t g = 0; g < groups_.size(); ++g)
        sequence.slots[g][p] = sequence.blocks.slot(static_cast<int>(g), p);
    sequence.length += count;
  }

  void release_outside_window(size_t index, int64_t back) {
    ModelSequence& sequence = *sequences_[index];
    const int64_t position = std::max<int64_t>(0, sequence.length - back);
    cache_.release_outside_window(sequence.blocks, position);
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].window == 0) continue;
      int64_t& first = sequence.first_held[g];
      while (first + block_size_ - 1 < position - groups_[g].window + 1) first += block_size_;
      sequence.slots[g].erase(sequence.slots[g].begin(), sequence.slots[g].lower_bound(first));
    }
  }

  // Truncates by `back` tokens, but not below the shortest length still allowed.
  void truncate(size_t index, int64_t back) {
    ModelSequence& sequence = *sequences_[index];
    int64_t length = std::max<int64_t>(0, sequence.length - back);
    for (size_t g = 0; g < groups_.size(); ++g)
      if (sequence.first_held[g] > 0)
        length = std::max(length, sequence.first_held[g] + groups_[g].window - 1);
    length = std::min(length, sequence.length);
    cache_.truncate(sequence.blocks, length);
    sequence.length = length;
    for (auto& slots : sequence.slots) slots.erase(slots.lower_bound(length), slots.end());
  }

  void check() const {
    std::vector<const SequenceBlocks*> live;
    for (const auto& sequence : sequences_) live.push_back(&sequence->blocks);
    cache_.check_integrity(live);
    for (size_t g = 0; g < groups_.size(); ++g) {
      ASSERT_EQ(cache_.pool(static_cast<int>(g)).num_free(), num_free(g));
      std::set<int64_t> taken;
      for (const auto& sequence : sequences_) {
        ASSERT_EQ(sequence->blocks.length(), sequence->length);
        for (const auto& [position, slot] : sequence->slots[g]) {
          ASSERT_EQ(sequence->blocks.slot(static_cast<int>(g), position), slot) << "a slot moved";
          ASSERT_TRUE(taken.insert(slot).second) << "two positions share a slot";
          ASSERT_LT(slot, groups_[g].num_blocks * block_size_);
        }
      }
    }
  }

 private:
  // A sequence holds a block while it covers a position from first_held to length - 1.
  int64_t num_free(size_t group) const {
    int64_t free = groups_[group].num_blocks;
    for (const auto& sequence : sequences_)
      for (int64_t p = sequence->first_held[group]; p < sequence->length; p += block_size_) --free;
    return free;
  }

  int64_t block_size_;
  std::vector<CacheGroup> groups_;
  StateCache cache_;
  std::vector<std::unique_ptr<ModelSequence>> sequences_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t up_to(int64_t most) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(most + 1));
  }

 private:
  std::mt19937_64 engine_;
};

void run(uint64_t seed, int64_t num_blocks) {
  Random random(seed);
  const int64_t block_size =
      std::vector<int64_t>{1, 2, 3, 16}[static_cast<size_t>(random.up_to(3))];
  std::vector<CacheGroup> groups;
  for (int64_t g = random.up_to(2); g >= 0; --g) {
    const int64_t window = random.up_to(2) == 0 ? 0 : 1 + random.up_to(3 * block_size);
    groups.push_back(
        {.window = window, .num_blocks = std::max<int64_t>(1, num_blocks - random.up_to(2))});
  }
  Model model(block_size, groups);
  for (int step = 0; step < 300; ++step) {
    SCOPED_TRACE(::testing::Message()
                 << "seed " << seed << ", " << num_blocks << " blocks, step " << step);
    const int64_t operation = random.up_to(19);
    if (model.num_sequences() == 0 || (operation == 0 && model.num_sequences() < 6)) {
      model.begin();
    } else {
      const auto index =
          static_cast<size_t>(random.up_to(static_cast<int64_t>(model.num_sequences()) - 1));
      if (operation == 1) {
        model.end(index);
      } else if (operation < 10) {
        model.append(index, random.up_to(random.up_to(3) == 0 ? 6 * block_size : block_size + 1));
      } else if (operation < 16) {
        model.release_outside_window(index, random.up_to(3));
      } else {
        model.truncate(index, random.up_to(2 * block_size));
      }
    }
    model.check();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(StateCacheProperty, RandomOperationsAgreeWithANaiveModel) {
  const auto num_seeds = static_cast<uint64_t>(scaled(40, 4000));
  for (int64_t num_blocks : {1, 2, 7, 20, 60}) {
    for (uint64_t seed = 0; seed < num_seeds; ++seed) {
      run(seed * 1000 + static_cast<uint64_t>(num_blocks), num_blocks);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace paceline
