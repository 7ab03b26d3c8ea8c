#include "dataset/random_order.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace paceline {
namespace {

class BoundedDraws {
 public:
  BoundedDraws(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  // Uniform below `bound`: draws from the incomplete last multiple of it are drawn again.
  uint64_t next(uint64_t bound) {
    const uint64_t incomplete = -bound % bound;  // 2^64 modulo bound
    while (true) {
      const auto words = philox4x32(seed_, counter_++, stream_);
      const uint64_t draw = (uint64_t{words[0]} << 32) | words[1];
      if (draw >= incomplete) return draw % bound;
    }
  }

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t counter_ = 0;
};

}  // namespace

std::vector<int64_t> random_order(int64_t count, uint64_t seed, uint64_t stream) {
  PL_CHECK(count >= 0, "a count");
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  BoundedDraws draws(seed, stream);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draws.next(i)]);
  return order;
}

}  // namespace paceline
