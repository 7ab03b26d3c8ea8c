// The softmax of a chunk in registers, as the matrix instructions of a warp and those of a
// warpgroup leave its scores: lane 4 g + t has rows g and g + 8 of 16, and four of each 16 keys
// (LaneKeys).
#pragma once

#include "kernels/cuda/code/attention_copies.h"

namespace paceline::cuda {

// One of the two packed rows of a lane; absent ones see nothing.
struct TiledRow {
  int32_t first;  // visible position
  int32_t end;    // behind the last
  SoftmaxState softmax;

  PL_DEVICE bool sees(int32_t chunk) const {
    return end > chunk * kTiledKeys && first < (chunk + 1) * kTiledKeys;
  }
};

// The last one where there is no such row.
PL_DEVICE TiledRow tiled_row(const AttentionKernelParams& p, const TiledRows& rows, int32_t packed,
                             RowPlace& place) {
  const bool is_present = packed < rows.count;
  const int32_t nearest = is_present ? packed : rows.count - 1;
  const int32_t index = rows.row(p, nearest);
  const AttentionRow& row = p.rows[index];
  place = {index, static_cast<int32_t>(row.row), rows.head(p, nearest)};
  return {is_present ? static_cast<int32_t>(row.first) : 0,
          is_present ? static_cast<int32_t>(row.end) : 0,
          {}};
}

constexpr int kLaneKeys = kTiledKeys / 4;     // of a chunk
constexpr int kValueSteps = kTiledKeys / 16;  // of a chunk's products with values

// The numbers of four lanes that share a row.
template <class How>
PL_DEVICE float reduce_row(float value) {
  value = How::combine(value, shuffle_xor(value, 1));
  return How::combine(value, shuffle_xor(value, 2));
}

// The first key of a lane in a chunk.
template <class Stored>
PL_DEVICE int32_t first_lane_key() {
  return LaneKeys<Stored>::kOfLane * static_cast<int32_t>(lane_index() % 4);
}

// Which of a lane's keys of a chunk its row sees, as offsets from the lane's first.
struct SeenKeys {
  int32_t begin;
  int32_t end;

  PL_DEVICE bool has(int32_t offset) const { return offset >= begin && offset < end; }
  // The bits of two neighbouring keys.
  PL_DEVICE uint32_t pair(int32_t offset) const {
    return (has(offset) ? 0xFFFFu : 0u) | (has(offset + 1) ? 0xFFFF0000u : 0u);
  }
};
template <class Stored>
PL_DEVICE SeenKeys seen_keys(int32_t chunk, int32_t first, int32_t end) {
  const int32_t first_key = chunk * kTiledKeys + first_lane_key<Stored>();
  return {first - first_key, end - first_key};
}
// Those of row g of the warp's 16, in all lanes.
template <class Stored>
PL_DEVICE SeenKeys seen_keys_of(int32_t chunk, const TiledRow (&rows)[2], uint32_t row) {
  const bool is_first = row < 8;
  const uint32_t lane = row % 8 * 4;
  return seen_keys<Stored>(chunk, shuffle(is_first ? rows[0].first : rows[1].first, lane),
                           shuffle(is_first ? rows[0].end : rows[1].end, lane));
}

// What scores are multiplied by to be powers of two; with a soft cap they have their scale before.
PL_DEVICE float power_factor(const AttentionKernelParams& p) {
  return p.soft_cap > 0.0f ? kLog2E : p.scale * kLog2E;
}

// Four at a time, each time the first ones: their code is long, and registers have no index.
template <class Scores>
PL_DEVICE void cap_scores(const AttentionKernelParams& p, int row, Scores& scores) {
  PL_ROLLED
  for (int turn = 0; turn < kLaneKeys / 4; ++turn) {
    float four[4];
    PL_UNROLL
    for (int i = 0; i < 4; ++i) four[i] = capped(scores.key(row, i) * p.scale, p.soft_cap);
    PL_UNROLL
    for (int i = 0; i < kLaneKeys - 4; ++i) scores.key(row, i) = scores.key(row, i + 4);
    PL_UNROLL
    for (int i = 0; i < 4; ++i) scores.key(row, kLaneKeys - 4 + i) = four[i];
  }
}

// Makes exponentials of the dot products of a lane's row: `scores.key(row, i)` is that of its key
// i. Returns the chunk's maximum and sum.
template <class Stored, class Scores>
PL_DEVICE SoftmaxState weigh_scores(const AttentionKernelParams& p, int32_t chunk,
                                    const TiledRow& own, int row, Scores& scores) {
  using Keys = LaneKeys<Stored>;
  const SeenKeys seen = seen_keys<Stored>(chunk, own.first, own.end);
  if (p.soft_cap > 0.0f) cap_scores(p, row, scores);
  if (!all(seen.begin <= 0 && seen.end > Keys::offset(kLaneKeys - 1))) {
    PL_UNROLL
    for (int i = 0; i < kLaneKeys; ++i) {
      scores.key(row, i) = seen.has(Keys::offset(i)) ? scores.key(row, i) : -kInfinity;
    }
  }
  float max = -kInfinity;
  PL_UNROLL
  for (int i = 0; i < kLaneKeys; ++i) max = Maximum::combine(max, scores.key(row, i));
  max = reduce_row<Maximum>(max);
  const float factor = power_factor(p), power = max == -kInfinity ? 0.0f : max * factor;
  float sum = 0.0f;
  PL_UNROLL
  for (int i = 0; i < kLaneKeys; ++i) {
    const float share = rough_power_of_two(fused_multiply_add(scores.key(row, i), factor, -power));
    sum = sum + share;
    scores.key(row, i) = share;
  }
  return {power, reduce_row<Sum>(sum)};
}

// Multiplies weights with the scales of their codes, of all keys of the chunk; those of keys that
// the row doesn't see may be anything.
template <class Scores>
PL_DEVICE void scale_weights(const Floats4* scales, int32_t chunk, const TiledRow& own, int row,
                             Scores& scores) {
  using Keys = LaneKeys<int8_t>;
  const SeenKeys seen = seen_keys<int8_t>(chunk, own.first, own.end);
  PL_UNROLL
  for (int i = 0; i < kLaneKeys; i += 4) {
    const auto four = load_as<Floats4>(scales + i + static_cast<int>(lane_index() % 4));
    PL_UNROLL
    for (int k = 0; k < 4; ++k) {
      float& weight = scores.key(row, i + k);
      weight = seen.has(Keys::offset(i + k)) ? weight * four.of[k] : 0.0f;
    }
  }
}

// The weights of a lane's row as operands of products with values, in place of `row` of each
// step's.
template <class Scores>
PL_DEVICE void pack_weights(int row, Scores& scores, uint32_t (&a)[kValueSteps][4]) {
  PL_UNROLL
  for (int i = 0; i < kLaneKeys / 2; ++i) {
    a[i / 2][row + i % 2 * 2] = pack_bf16(scores.key(row, 2 * i), scores.key(row, 2 * i + 1));
  }
}

// Whether a row of the warp that sees the chunk doesn't see all of its keys that are there.
PL_DEVICE bool hides_any_key(const TiledRows& tile, int32_t chunk, const TiledRow (&rows)[2]) {
  const int32_t first = chunk * kTiledKeys, end = first + kTiledKeys;
  bool hides = false;
  PL_UNROLL
  for (int row = 0; row < 2; ++row) {
    const bool hides_first = rows[row].first > first && rows[row].first > tile.begin;
    const bool hides_last = rows[row].end < end && rows[row].end < tile.end;
    if (rows[row].sees(chunk) && (hides_first || hides_last)) hides = true;
  }
  return any(hides);
}

}  // namespace paceline::cuda
