// The system's memory as the source of a Memory's blocks.
#pragma once

#include <cstddef>

#include "tensor/memory.h"

namespace paceline {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

// The bytes that a block of `bytes` (at most PTRDIFF_MAX) takes.
size_t system_capacity(size_t bytes);

// Whether blocks of both capacities are freed in the same way.
bool same_system_kind(size_t capacity, size_t other);

// Thread-safe. Large blocks are mapped one by one. Those of medium size lie side by side in larger
// regions, so that both kinds can use huge pages: the matrices of a mixture's experts are of medium
// size, and reading them from pages of 4 KiB took 4 % longer. Small blocks are the allocator's.
MemorySource& system_memory();

}  // namespace paceline
