// DistanceScores add to the scores of attention by the distance of a key from its query.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/operands.h"
#include "layers/scratch.h"

namespace paceline {

struct LoadContext;

enum class DistanceScoreKind : uint8_t {
  linear,   // less by a slope of each head (ALiBi: Press et al., 2022), in both directions
  buckets,  // learned for buckets of distances (T5: Raffel et al., 2020; MPNet)
  // More by ALiBi's slope for each position of the key; slopes, positions and their products are
  // rounded to bfloat16 (Falcon: transformers' modeling_falcon).
  rounded_positions,
};

struct DistanceScoresConfig {
  DistanceScoreKind kind = DistanceScoreKind::linear;
  int64_t num_heads = 0;
  int64_t reach = 0;       // the longest distance
  float scale = 1.0f;      // of the sums of scores, behind which these count
  bool causal = false;     // keys stand in front of their queries
  double steepness = 8.0;  // of ALiBi: the last slope is 2 to the power of minus it

  bool operator==(const DistanceScoresConfig&) const = default;
};

class DistanceScores {
 public:
  // Of buckets: relative_attention_bias.weight [kNumBuckets, heads].
  DistanceScores(const LoadContext& context, const DistanceScoresConfig& config);

  // It lives as long as this.
  PositionScores scores() const;

  static constexpr int64_t kNumBuckets = 32;

 private:
  DistanceScoresConfig config_;
  OwnedTensor table_;  // [heads * PositionScores::width()]
};

// The bucket of a key `distance` behind its query, of DistanceScores::kNumBuckets (transformers'
// modeling_mpnet).
int64_t distance_bucket(int64_t distance);
// ALiBi's slopes; where the number of heads isn't a power of two, the rest are those of more heads.
std::vector<double> alibi_slopes(int64_t num_heads, double steepness = 8.0);

}  // namespace paceline
