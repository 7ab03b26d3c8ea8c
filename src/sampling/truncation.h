// Truncation reduces a row to the candidates that the filters of SamplingOptions keep.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/blocked_row.h"
#include "sampling/candidates.h"
#include "sampling/sampling_options.h"
#include "sampling/weights.h"

namespace paceline {

// False when the options cut nothing: every finite element of the row stays, and `candidates` is
// untouched. Min-p (Nguyen et al., 2024), top-k (Fan et al., 2018) and top-p (Holtzman et al.,
// 2020) keep prefixes of the order (probability down, id up): tokens at least min_p times as likely
// as the first, the first k, the fewest that have top_p of the remaining weight. SamplerOrder
// decides their order; `standard` filters at the temperature, `mlx` at temperature 1, like mlx-lm's
// make_sampler. `row` has no NaN and its maximum is finite; `block_sums` has an element per block.
// Candidates keep the weights used for the cuts.
bool truncate(BlockedRow& row, const SamplingOptions& options, std::span<uint64_t> block_sums,
              Candidates& candidates);

// Keeps the candidates at least min_p > 0 times as likely as the likeliest of the row.
void keep_min_p(Candidates& candidates, float min_p);

}  // namespace paceline
