#include "dataset/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "dataset/random_order.h"

namespace paceline {
namespace {

constexpr uint64_t kSplitStream = uint64_t{0x73706c6974} << 24;  // "split"

}  // namespace

ExampleSplit split_examples(std::vector<Example> examples, double valid_fraction, uint64_t seed) {
  if (!(valid_fraction > 0 && valid_fraction < 1)) {
    throw Error(ErrorCode::invalid,
                fmt::format("the fraction of examples for validation: found {}, expected a number "
                            "above 0 and below 1",
                            valid_fraction));
  }
  const auto count = static_cast<int64_t>(examples.size());
  if (count < 2) {
    throw Error(ErrorCode::invalid,
                fmt::format("found {} examples to split for validation, expected at least 2; give "
                            "a file to validate with, or train without",
                            count));
  }
  const auto wanted = std::llround(valid_fraction * static_cast<double>(count));
  const int64_t num_valid = std::clamp<int64_t>(wanted, 1, count - 1);
  const std::vector<int64_t> order = random_order(count, seed, kSplitStream);
  std::vector<bool> is_valid(examples.size());
  for (int64_t i = 0; i < num_valid; ++i) {
    is_valid[static_cast<size_t>(order[static_cast<size_t>(i)])] = true;
  }
  ExampleSplit split;
  for (size_t i = 0; i < examples.size(); ++i) {
    (is_valid[i] ? split.valid : split.train).push_back(std::move(examples[i]));
  }
  return split;
}

}  // namespace paceline
