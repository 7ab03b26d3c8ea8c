// The sums of the pieces of parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "prepared/part.h"

namespace paceline {

// In order of parts and pieces. `parts` may be with or without the file's padding of zeros: the
// sums are the same.
std::vector<uint64_t> sums_of_pieces(std::span<const Part> parts, ThreadPool& threads);

}  // namespace paceline
