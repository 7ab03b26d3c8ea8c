// Draw picks one token by weight, with the key of the draw (sampling/race.h).
#pragma once

#include <cstdint>
#include <span>

#include "sampling/blocked_row.h"
#include "sampling/candidates.h"
#include "sampling/distribution.h"
#include "sampling/race.h"
#include "sampling/weights.h"

namespace paceline {

// The weight of every block of the row, in `block_sums`, and of the whole row.
uint64_t sum_blocks(const BlockedRow& row, const Weigher& weigher, std::span<uint64_t> block_sums);

// The winner of a race (sampling/race.h) among candidates of positive weight, at least one ...
int32_t draw_candidate(const Candidates& candidates, uint64_t key);
// ... or among those of a distribution ...
int32_t draw_from(const Distribution& distribution, uint64_t key);
// ... or among all of a row. Equal to drawing from candidates that hold the whole row.
int32_t draw_from_row(const BlockedRow& row, const Weigher& weigher, uint64_t key);

}  // namespace paceline
