// Random blocks of each element type of GGUF: numbers around zero, as weights are.
#pragma once

#include <random>
#include <span>
#include <string>

#include "weights/gguf_type.h"

namespace paceline::testing {

// The types that random_blocks() makes.
std::span<const GgufType> types_with_random_blocks();

// `count` elements, whole blocks, of about the same spread whatever the type: as they stand in a
// file. Codes and the scales inside a block are any bytes.
std::string random_blocks(GgufType type, size_t count, std::mt19937_64& random);

}  // namespace paceline::testing
