// Random blocks of each element type of GGUF, with numbers around zero, like weights.
#pragma once

#include <random>
#include <span>
#include <string>

#include "weights/gguf_type.h"

namespace paceline::testing {

// The types that random_blocks() makes.
std::span<const GgufType> types_with_random_blocks();

// `count` elements in whole blocks, encoded as in a file, with about the same spread for every
// type. Codes and the scales inside a block are random bytes.
std::string random_blocks(GgufType type, size_t count, std::mt19937_64& random);

}  // namespace paceline::testing
