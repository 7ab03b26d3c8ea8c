#include "layers/distance_scores.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "layers/load_context.h"

namespace paceline {
namespace {

constexpr const char* kName = "relative_attention_bias.weight";

int64_t width_of(int64_t reach) { return 2 * reach + kPositionScorePadding; }

// score(head, distance), what sums of scores are less by their scale.
std::vector<float> tabulate(const DistanceScoresConfig& config,
                            const std::function<double(int64_t, int64_t)>& score) {
  std::vector<float> table(static_cast<size_t>(config.num_heads * width_of(config.reach)), 0.0f);
  for (int64_t head = 0; head < config.num_heads; ++head) {
    for (int64_t distance = -config.reach; distance <= config.reach; ++distance) {
      table[static_cast<size_t>(head * width_of(config.reach) + config.reach + distance)] =
          static_cast<float>(score(head, distance) / double{config.scale});
    }
  }
  return table;
}

std::vector<float> make_table(const LoadContext& context, const DistanceScoresConfig& config) {
  if (config.kind == DistanceScoreKind::linear) {
    const std::vector<double> slopes = alibi_slopes(config.num_heads);
    return tabulate(config, [&](int64_t head, int64_t distance) {
      return -slopes[static_cast<size_t>(head)] * static_cast<double>(std::abs(distance));
    });
  }
  const std::vector<float> learned =
      read_elements(context, kName, {DistanceScores::kNumBuckets, config.num_heads});
  return tabulate(config, [&](int64_t head, int64_t distance) {
    const int64_t bucket = distance_bucket(distance);
    return double{learned[static_cast<size_t>(bucket * config.num_heads + head)]};
  });
}

OwnedTensor load_table(const LoadContext& context, const DistanceScoresConfig& config) {
  auto prepared = prepared_vector(context, kName, config.num_heads * width_of(config.reach));
  if (prepared) return std::move(*prepared);
  return store_vector(context, kName, make_table(context, config));
}

}  // namespace

int64_t distance_bucket(int64_t distance) {
  constexpr int64_t kHalf = DistanceScores::kNumBuckets / 2, kExact = kHalf / 2;
  constexpr float kMostDistance = 128.0f;
  const int64_t first = distance > 0 ? kHalf : 0;
  const int64_t away = std::abs(distance);
  if (away < kExact) return first + away;
  const float share = std::log(static_cast<float>(away) / kExact) /
                      static_cast<float>(std::log(double{kMostDistance} / kExact));
  const auto beyond = static_cast<int64_t>(share * static_cast<float>(kHalf - kExact));
  return first + std::min(kExact + beyond, kHalf - 1);
}

std::vector<double> alibi_slopes(int64_t num_heads) {
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num_heads)));
  std::vector<double> slopes;
  for (int64_t i = 1; i <= below; ++i) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(below)));
  }
  for (int64_t i = 1; std::ssize(slopes) < num_heads; i += 2) {
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(i) / static_cast<double>(below)));
  }
  return slopes;
}

DistanceScores::DistanceScores(const LoadContext& context, const DistanceScoresConfig& config)
    : num_heads_(config.num_heads), reach_(config.reach), table_(load_table(context, config)) {}

PositionScores DistanceScores::scores() const {
  return {
      .by_distance = table_.view.as_strided({num_heads_, width_of(reach_)}, {width_of(reach_), 1}),
      .reach = reach_};
}

}  // namespace paceline
