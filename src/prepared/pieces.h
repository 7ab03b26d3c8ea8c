// Pieces are what checksums cover: at most 1 MiB of one part each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "prepared/part.h"

namespace paceline {

struct Piece {
  std::span<const std::byte> bytes;
  uint64_t index = 0;  // in the file; the seed of its sum
};

// Cuts a part's bytes into pieces, numbered from `first_index` on.
std::vector<Piece> pieces_of(const Part& part, uint64_t first_index);

// The sum of each, by all threads. Zeros behind the last piece of a part don't change its sum.
std::vector<uint64_t> sums_of(std::span<const Piece> pieces, ThreadPool& threads);

}  // namespace paceline
