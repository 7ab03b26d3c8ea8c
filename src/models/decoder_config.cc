#include "models/decoder_config.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace paceline {

int64_t DecoderConfig::stretched_length(int64_t length) const {
  int64_t longest = 0;
  for (const RopeConfig& rope : ropes) longest = std::max(longest, rope.stretched_length(length));
  return longest;
}

std::vector<float> DecoderConfig::query_factors(Indices<int32_t> positions) const {
  std::vector<float> factors;
  if (query_growth.beta == 0.0) return factors;
  factors.reserve(static_cast<size_t>(positions.size()));
  for (const int32_t position : positions.host()) {
    const auto periods = static_cast<double>(position / query_growth.context);
    factors.push_back(static_cast<float>(1.0 + query_growth.beta * std::log1p(periods)));
  }
  return factors;
}

std::vector<int64_t> cache_group_windows(const DecoderConfig& config) {
  std::set<int64_t> windows;
  for (const LayerConfig& layer : config.layers) windows.insert(layer.window);
  return {windows.begin(), windows.end()};
}

int cache_group_of(const DecoderConfig& config, int64_t layer_index) {
  const auto windows = cache_group_windows(config);
  const int64_t window = config.layers[static_cast<size_t>(layer_index)].window;
  return static_cast<int>(std::find(windows.begin(), windows.end(), window) - windows.begin());
}

}  // namespace paceline
