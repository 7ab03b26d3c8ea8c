// Draw picks one token by weight with one uniform number, walking up the ids.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/blocked_row.h"
#include "sampling/candidates.h"
#include "sampling/distribution.h"
#include "sampling/weights.h"

namespace paceline {

// The weight of every block of the row, in `block_sums`, and of the whole row.
uint64_t sum_blocks(const BlockedRow& row, const Weigher& weigher, std::span<uint64_t> block_sums);

// The first token, by ascending id, at which the weights so far pass uniform * (their total);
// `uniform` in [0, 1). Among candidates with a positive weight ...
int32_t draw_candidate(const Candidates& candidates, double uniform);
// ... or among all of a row. Equal to drawing from candidates that hold the whole row.
int32_t draw_from_row(const BlockedRow& row, const Weigher& weigher, double uniform,
                      std::span<uint64_t> block_sums);

// ... or among those of a distribution, which isn't empty.
int32_t draw_from(const Distribution& distribution, double uniform);

}  // namespace paceline
