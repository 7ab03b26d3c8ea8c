// A tile of sums of a quantised product: some rows times some vectors of columns over one segment.
#pragma once

#include "kernels/cpu/group_layout.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {

constexpr int kPanelVectors = static_cast<int>(kPanelWidth) / kLanes;
// A sum takes two registers, one of integers inside a group and one of floats; the rest hold
// weights, scales and inputs.
constexpr int kGroupSums = kAccumulators / 2 - (kAccumulators < 24 ? 2 : 0);
constexpr int kMaxGroupVectors = kGroupSums >= 8 ? 8 : 4;
constexpr int kMinGroupVectors = 2;
constexpr int kMaxGroupRows = kGroupSums / kMinGroupVectors;
constexpr int kMaxStreamingRows = 4;
constexpr int64_t kLineLanes = 16;  // of four codes each
// The shortest group: so many elements are taken without a branch (of codes with a plane of single
// bits twice as many).
constexpr int kChunkElements = 16;

struct GroupTile {
  const char* codes = nullptr;    // of the first row's inputs at the segment's start
  const char* scales = nullptr;   // of the first row and the segment's first group
  int64_t starts = 0;             // bytes from a scale to the start of its integer sums
  int64_t sums = 0;               // from the first scale to the first sum of inputs
  int64_t input_stride = 0;       // bytes from row to row, of all of them
  const char* records = nullptr;  // the segment's first in the first vector's panel
  RecordLayout layout;
  const char* factors = nullptr;  // of the tile's columns
  int64_t panel_bytes = 0;
  int64_t first_lane = 0;  // of the tile's first column in its panel
  int64_t group_size = 0;
  int64_t num_groups = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t num_columns = 0;      // of the matrix, from the tile's first on
  const float* bias = nullptr;  // at the tile's first column, in the last segment; or nullptr
  bool is_first_segment = false;
  // A few rows prefetch what lies so many bytes ahead; from this record on so much more: the panels
  // after those of the tile.
  int64_t lead = 0;
  const char* leap_from = nullptr;
  int64_t leap = 0;
  // Weights that come next: so many bytes of [ahead, ahead_end) are asked for in each group.
  const char* ahead = nullptr;
  const char* ahead_end = nullptr;
  int64_t ahead_step = 0;
};

// Where vector v of the tile's columns stands: in which panel, and how many lanes in.
PL_INLINE int64_t panel_of(int v) { return v / kPanelVectors; }
PL_INLINE int64_t lane_of(int v) { return v % kPanelVectors * int64_t{kLanes}; }

}  // namespace paceline::PACELINE_ISA_NAMESPACE
