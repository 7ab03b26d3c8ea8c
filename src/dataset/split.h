// Splits examples into those to train on and those to validate with.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset/example.h"

namespace paceline {

struct ExampleSplit {
  std::vector<Example> train;
  std::vector<Example> valid;
};

// Chooses the nearest number of examples to `valid_fraction`, at least one and not all, at random
// by the seed; both parts keep the order. Throws Error invalid when the fraction isn't above 0 and
// below 1 or there is only one example.
ExampleSplit split_examples(std::vector<Example> examples, double valid_fraction, uint64_t seed);

}  // namespace paceline
