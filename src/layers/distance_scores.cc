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

// Without its table.
PositionScores shape_of(const DistanceScoresConfig& config) {
  return {.by_position = config.kind == DistanceScoreKind::rounded_positions,
          .reach = config.reach,
          .reach_ahead = config.causal ? 0 : config.reach};
}

// score(head, distance), or (head, position), what sums of scores are less by their scale.
std::vector<float> tabulate(const DistanceScoresConfig& config,
                            const std::function<double(int64_t, int64_t)>& score) {
  const PositionScores shape = shape_of(config);
  const int64_t first = shape.by_position ? 0 : -config.reach;
  const int64_t count = shape.width() - kPositionScorePadding + 1;
  std::vector<float> table(static_cast<size_t>(config.num_heads * shape.width()), 0.0f);
  for (int64_t head = 0; head < config.num_heads; ++head) {
    for (int64_t i = 0; i < count; ++i) {
      table[static_cast<size_t>(head * shape.width() + i)] =
          static_cast<float>(score(head, first + i) / double{config.scale});
    }
  }
  return table;
}

// Rounded to bfloat16.
double round_number(double value) { return to_float(to_bfloat16(static_cast<float>(value))); }

std::vector<float> make_table(const LoadContext& context, const DistanceScoresConfig& config) {
  if (config.kind == DistanceScoreKind::linear) {
    const std::vector<double> slopes = alibi_slopes(config.num_heads, config.steepness);
    return tabulate(config, [&](int64_t head, int64_t distance) {
      return -slopes[static_cast<size_t>(head)] * static_cast<double>(std::abs(distance));
    });
  }
  if (config.kind == DistanceScoreKind::rounded_positions) {
    const std::vector<double> slopes = alibi_slopes(config.num_heads, config.steepness);
    return tabulate(config, [&](int64_t head, int64_t position) {
      const double slope = round_number(slopes[static_cast<size_t>(head)]);
      return round_number(slope * round_number(static_cast<double>(position)));
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
  auto prepared = prepared_vector(context, kName, config.num_heads * shape_of(config).width());
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

std::vector<double> alibi_slopes(int64_t num_heads, double steepness) {
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num_heads)));
  std::vector<double> slopes;
  for (int64_t i = 1; i <= below; ++i) {
    slopes.push_back(std::exp2(-steepness * static_cast<double>(i) / static_cast<double>(below)));
  }
  for (int64_t i = 1; std::ssize(slopes) < num_heads; i += 2) {
    slopes.push_back(
        std::exp2(-0.5 * steepness * static_cast<double>(i) / static_cast<double>(below)));
  }
  return slopes;
}

DistanceScores::DistanceScores(const LoadContext& context, const DistanceScoresConfig& config)
    : config_(config), table_(load_table(context, config)) {}

PositionScores DistanceScores::scores() const {
  PositionScores scores = shape_of(config_);
  const int64_t width = scores.width();
  scores.by_distance = table_.view.as_strided({config_.num_heads, width}, {width, 1});
  return scores;
}

}  // namespace paceline
