// Random sequences that share blocks, by prefix or by fork, against a naive cache.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/state/sharing_world.h"
#include "tests/test_scale.h"

namespace paceline::testing {
namespace {

int64_t run(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  const int64_t block_size = 1 + below(4);
  std::vector<CacheGroup> groups;
  for (int64_t g = below(3); g >= 0; --g) {
    groups.push_back({.window = below(2) == 0 ? 0 : 1 + below(3 * block_size + 1),
                      .num_blocks = 2 + below(below(3) == 0 ? 60 : 16)});
  }
  SharingWorld world(random(), block_size, groups);
  for (int step = 0; step < 150; ++step) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", step " << step);
    world.step();
    if (!::testing::Test::HasFailure()) world.check();
    if (::testing::Test::HasFailure()) break;
  }
  return world.num_hits();
}

TEST(SharedPrefixProperty, RandomOperationsAgreeWithANaiveCache) {
  const auto num_seeds = static_cast<uint64_t>(scaled(400, 40'000));
  int64_t num_hits = 0;
  for (uint64_t seed = 0; seed < num_seeds; ++seed) {
    num_hits += run(seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(num_hits, static_cast<int64_t>(num_seeds)) << "prefixes are found";
}

}  // namespace
}  // namespace paceline::testing
