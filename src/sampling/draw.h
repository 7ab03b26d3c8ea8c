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

// Each returns the winner of a race (sampling/race.h) among tokens of positive weight. There must
// be at least one.
int32_t draw_candidate(const Candidates& candidates, uint64_t key);
int32_t draw_from(const Distribution& distribution, uint64_t key);
// Equal to draw_candidate() with candidates that hold the whole row.
int32_t draw_from_row(const BlockedRow& row, const Weigher& weigher, uint64_t key);

}  // namespace paceline
