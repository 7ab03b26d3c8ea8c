// The sums of the pieces of parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "prepared/part.h"

namespace paceline {

// Piece after piece, part after part. The bytes of `parts` may or may not have the zeros behind
// them that the file has: the sums are the same.
std::vector<uint64_t> sums_of_pieces(std::span<const Part> parts, ThreadPool& threads);

}  // namespace paceline
