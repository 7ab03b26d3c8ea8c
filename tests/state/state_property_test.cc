// Random sequences with states beside keys and values: a state that is found is that of the prefix,
// whatever was saved, copied, evicted, shared or taken back before.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "base/state_chunk.h"
#include "state/state_cache.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

using Tokens = std::vector<int32_t>;

struct Runner {
  SequenceBlocks blocks;
  Tokens tokens;
  int64_t num_computed = 0;
  int64_t num_found = 0;  // of a prefix
};

class StateWorld {
 public:
  StateWorld(uint64_t seed, int64_t block_size, std::vector<CacheGroup> groups)
      : random_(seed), block_size_(block_size), cache_(block_size, groups) {
    for (const CacheGroup& group : groups) {
      states_.emplace_back(group.is_recurrent ? static_cast<size_t>(group.num_blocks) : 0);
    }
    for (auto& script : scripts_) {
      for (int i = 0; i < 60; ++i) script.push_back(static_cast<int32_t>(below(2)));
    }
  }

  void step() {
    if (runners_.empty() || (below(6) == 0 && runners_.size() < 5)) return begin();
    const auto index = static_cast<size_t>(below(std::ssize(runners_)));
    Runner& runner = *runners_[index];
    switch (below(10)) {
      case 0:
        return end(index);
      case 1:
        return fork(runner);
      case 2:
        return take_back(runner);
      default:
        if (runner.num_computed > 50) return end(index);
        return compute(runner);
    }
  }

  void check() const {
    std::vector<const SequenceBlocks*> live;
    for (const auto& runner : runners_) live.push_back(&runner->blocks);
    cache_.check_integrity(live);
    for (const auto& runner : runners_) expect_state(*runner, runner->num_computed);
  }

  int64_t num_hits() const { return num_hits_; }

 private:
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

  std::vector<Hash128> hashes(const Tokens& tokens) const {
    std::vector<Hash128> chain;
    Hash128 hash = cache_.prefixes().root({});
    const auto size = static_cast<size_t>(block_size_);
    for (size_t end = size; end <= tokens.size(); end += size) {
      hash = cache_.prefixes().extend(hash, std::span(tokens).subspan(end - size, size));
      chain.push_back(hash);
    }
    return chain;
  }

  // The state of its own block is that of its tokens up to `position`. It may have gone on: what it
  // was at its last two boundaries stays with it.
  void expect_state(const Runner& runner, int64_t position) const {
    for (int g = 0; g < cache_.num_groups(); ++g) {
      if (!cache_.holds_states(g) || position == 0) continue;
      const auto block = static_cast<size_t>(runner.blocks.table(g).front());
      const Tokens& content = states_[static_cast<size_t>(g)][block];
      ASSERT_GE(std::ssize(content), position);
      ASSERT_LT(std::ssize(content) - position, 2 * block_size_);
      ASSERT_TRUE(std::equal(content.begin(), content.begin() + position, runner.tokens.begin()));
    }
  }

  // Its open rows are those of its tokens. Prefixes end inside of chunks here, and have none.
  void expect_open_rows(const Runner& runner) const {
    const int64_t end = runner.num_computed;
    if (!cache_.open_group() || end % kStateChunk == 0 || end == runner.num_found) return;
    const int group = *cache_.open_group();
    const auto block = static_cast<size_t>(runner.blocks.table(group).front());
    const Tokens& content = states_[static_cast<size_t>(group)][block];
    ASSERT_GE(std::ssize(content), end);
    ASSERT_TRUE(std::equal(content.begin(), content.begin() + end, runner.tokens.begin()));
  }

  void make_copies() {
    for (const BlockCopy& copy : cache_.copies()) {
      auto& states = states_[static_cast<size_t>(copy.group)];
      if (states.empty()) continue;
      states[static_cast<size_t>(copy.to)] = states[static_cast<size_t>(copy.from)];
    }
    cache_.clear_copies();
  }

  void begin() {
    for (int g = 0; g < cache_.num_groups(); ++g) {
      if (cache_.group(g).is_recurrent && cache_.pool(g).num_free() == 0) return;
    }
    auto runner = std::make_unique<Runner>();
    runner->blocks = SequenceBlocks(cache_);
    const Tokens& script = scripts_[static_cast<size_t>(below(2))];
    runner->tokens.assign(script.begin(), script.begin() + 1 + below(40));
    PrefixHit hit;
    const auto chain = hashes(runner->tokens);
    cache_.find_prefix(chain, runner->tokens, std::ssize(runner->tokens) - 1, hit);
    for (int g = 0; g < cache_.num_groups(); ++g) {
      if (hit.revived[static_cast<size_t>(g)] > cache_.pool(g).num_free()) return;
    }
    cache_.take_prefix(runner->blocks, chain, runner->tokens, hit.length);
    make_copies();
    runner->num_computed = runner->num_found = hit.length;
    num_hits_ += hit.length > 0 ? 1 : 0;
    runners_.push_back(std::move(runner));
    expect_state(*runners_.back(), hit.length);
  }

  void compute(Runner& runner) {
    const int64_t length = runner.num_computed + 1 + below(3 * block_size_);
    if (cache_.reserve(runner.blocks, length, length)) return;
    for (int64_t p = runner.num_computed / block_size_ * block_size_ + block_size_; p <= length;
         p += block_size_) {
      if (below(2) == 0) cache_.save_state(runner.blocks, p);
    }
    make_copies();
    expect_open_rows(runner);
    while (std::ssize(runner.tokens) < length) {
      runner.tokens.push_back(static_cast<int32_t>(below(2)));
    }
    const auto content = [&](int64_t position) {
      return Tokens(runner.tokens.begin(), runner.tokens.begin() + position);
    };
    for (int g = 0; g < cache_.num_groups(); ++g) {
      auto& states = states_[static_cast<size_t>(g)];
      if (states.empty()) continue;
      states[static_cast<size_t>(runner.blocks.table(g).front())] = content(length);
    }
    for (const SavedState& save : runner.blocks.saves()) {
      states_[static_cast<size_t>(save.group)][static_cast<size_t>(save.block)] =
          content(save.position);
    }
    // Of a draft fewer rows may stand: a state can take back up to a block.
    const int64_t kept = std::max(length - below(2) * below(block_size_), runner.num_computed + 1);
    runner.num_computed = kept;
    runner.tokens.resize(static_cast<size_t>(std::max(kept, std::ssize(runner.tokens) - 2)));
    cache_.publish(runner.blocks, hashes(runner.tokens), runner.tokens, kept, below(4) != 0);
    cache_.truncate(runner.blocks, kept);
    cache_.release_outside_window(runner.blocks, kept);
    EXPECT_TRUE(runner.blocks.saves().empty());
  }

  void take_back(Runner& runner) {
    if (runner.num_computed == 0) return;
    cache_.truncate(runner.blocks, runner.num_computed);
  }

  void fork(const Runner& runner) {
    if (runners_.size() >= 5 || runner.num_computed == 0) return;
    auto forked = std::make_unique<Runner>();
    forked->blocks = cache_.fork(runner.blocks);
    forked->tokens = runner.tokens;
    forked->num_computed = runner.num_computed;
    forked->num_found = runner.num_found;
    forked->tokens.resize(static_cast<size_t>(forked->num_computed));
    runners_.push_back(std::move(forked));
  }

  void end(size_t index) {
    Runner& runner = *runners_[index];
    if (below(3) != 0) {
      cache_.publish_end(runner.blocks, runner.num_computed / block_size_ * block_size_,
                         below(4) != 0);
      cache_.release_open_rows(runner.blocks);
      check();
    }
    runners_.erase(runners_.begin() + static_cast<int64_t>(index));
  }

  std::mt19937_64 random_;
  int64_t block_size_;
  StateCache cache_;
  std::vector<std::vector<Tokens>> states_;  // per group, by block: the tokens that it is after
  std::vector<std::unique_ptr<Runner>> runners_;
  Tokens scripts_[2];
  int64_t num_hits_ = 0;
};

TEST(StateProperty, AStateThatIsFoundIsThatOfThePrefix) {
  const auto num_seeds = static_cast<uint64_t>(scaled(400, 40'000));
  int64_t num_hits = 0;
  for (uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](int64_t bound) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
    };
    const int64_t block_size = 1 + below(4);
    std::vector<CacheGroup> groups;
    if (below(4) != 0) groups.push_back({.num_blocks = 20 + below(60)});
    if (below(3) == 0) groups.push_back({.window = 1 + below(9), .num_blocks = 20 + below(40)});
    groups.push_back({.num_blocks = 1 + below(12), .is_recurrent = true});
    if (below(4) == 0) groups.push_back({.num_blocks = 1 + below(12), .is_recurrent = true});
    if (below(4) != 0) {
      groups.push_back({.num_blocks = 1 + below(6), .is_recurrent = true, .holds_open_rows = true});
    }
    StateWorld world(random(), block_size, groups);
    for (int step = 0; step < 150; ++step) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", step " << step);
      world.step();
      if (!::testing::Test::HasFailure()) world.check();
      if (::testing::Test::HasFailure()) return;
    }
    num_hits += world.num_hits();
  }
  EXPECT_GT(num_hits, static_cast<int64_t>(num_seeds)) << "states are found";
}

}  // namespace
}  // namespace paceline::testing
