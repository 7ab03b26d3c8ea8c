#include "spec/rejection.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "sampling/draw.h"
#include "sampling/race.h"

namespace paceline {

namespace {

using Product = unsigned __int128;  // of a weight and the total of another distribution

uint64_t weight_of(const Distribution& distribution, int32_t id) {
  const auto found = std::ranges::lower_bound(distribution.ids, id);
  if (found == distribution.ids.end() || *found != id) return 0;
  return distribution.weights[static_cast<size_t>(found - distribution.ids.begin())];
}

// Whether bits / 2^64 * whole, rounded down, is below `part`: of uniform bits, with probability
// min(1, part / whole). Always with a `whole` of 0 and a larger part, never with a part of 0.
bool falls_below(uint64_t bits, Product part, Product whole) {
  const Product low = (Product{bits} * static_cast<uint64_t>(whole)) >> 64;
  return Product{bits} * static_cast<uint64_t>(whole >> 64) + low < part;
}

// Draws from max(0, p - q). The weight of token t is p(t) * total(q) - q(t) * total(p).
int32_t draw_residual(const Distribution& p, const Distribution& q, uint64_t key) {
  Race race(key);
  size_t next = 0;
  for (size_t i = 0; i < p.ids.size(); ++i) {
    while (next < q.ids.size() && q.ids[next] < p.ids[i]) ++next;
    const bool is_in_q = next < q.ids.size() && q.ids[next] == p.ids[i];
    const Product of_p = Product{p.weights[i]} * q.total;
    const Product of_q = is_in_q ? Product{q.weights[next]} * p.total : 0;
    if (of_p > of_q) race.enter(p.ids[i], static_cast<double>(of_p - of_q));
  }
  return race.winner() >= 0 ? race.winner() : draw_from(p, key);
}

}  // namespace

RejectionOutcome accept_or_resample(const Distribution& p, const Distribution* q, int32_t drafted,
                                    uint64_t seed, int64_t position) {
  PL_CHECK(!p.empty(), "there is nothing to draw from");
  const Distribution certain = {.ids = {drafted}, .weights = {1}, .total = 1};
  const Distribution& from = q != nullptr && !q->empty() ? *q : certain;
  const uint64_t bits = draw_key(seed, position, DrawPurpose::accept);
  const Product part = Product{weight_of(p, drafted)} * from.total;
  if (falls_below(bits, part, Product{weight_of(from, drafted)} * p.total)) {
    return {.accepted = true, .token = drafted};
  }
  return {.token = draw_residual(p, from, draw_key(seed, position, DrawPurpose::residual))};
}

int32_t draw_bonus(const Distribution& p, uint64_t seed, int64_t position) {
  return draw_from(p, draw_key(seed, position));
}

}  // namespace paceline
