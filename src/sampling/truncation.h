// Truncation reduces a row to the candidates that min-p, top-k and top-p leave, in either order.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/blocked_row.h"
#include "sampling/candidates.h"
#include "sampling/sampling_options.h"
#include "sampling/weights.h"

namespace paceline {

// False when the options cut nothing: every finite element of the row stays, and `candidates` is
// untouched. Each of the three keeps a prefix of the order (probability down, id up): min-p (Nguyen
// et al., 2024) those at least min_p times as likely as the first, top-k (Fan et al., 2018) the
// first k, top-p (Holtzman et al., 2020) the fewest that together have top_p of the weight left
// before it. `standard`: min-p, top-k, top-p at the temperature. `mlx`: top-p, min-p, top-k at
// temperature 1, as mlx-lm's make_sampler. `row` holds no NaN and its maximum is finite;
// `block_sums` has an element per block. Weights of the candidates are those the cuts were made
// with.
bool truncate(BlockedRow& row, const SamplingOptions& options, std::span<uint64_t> block_sums,
              Candidates& candidates);

}  // namespace paceline
