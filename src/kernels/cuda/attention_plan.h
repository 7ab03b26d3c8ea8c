// AttentionPlan lays out the rows of attention for its kernels, in launches whose results apart fit
// some memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/operands.h"

namespace paceline::cuda {

// Rows that one launch takes, among those of all slices.
struct AttentionPart {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_tile = 0;
  int64_t num_tiles = 0;
  int64_t most_chunks = 0;  // of a row
  bool is_split = false;    // chunks are computed apart, and merged by another kernel
};

// Decoded rows, whose tiles are of one warp, rows of prompts, whose tiles are of four, and those
// whose tiles are of two warpgroups.
struct AttentionParts {
  std::vector<AttentionPart> small, large, grouped;

  int64_t num_rows() const;
  int64_t most_chunks() const;  // of a row
};

// The rows of all slices, their block tables one after another, and their tiles, whose first rows
// are counted from those of their parts.
struct AttentionPlan {
  std::vector<AttentionRow> rows;
  std::vector<int32_t> tables;
  std::vector<AttentionTile> tiles;
  AttentionParts parts;
};

constexpr int kPromptWarps = 4;
// Blocks of a number of warps on a multiprocessor.
template <int kWarps>
inline constexpr int64_t kTileBlocks = kWarps == 1 ? 6 : 3;

struct AttentionSizes {
  int64_t kv_heads = 1;
  int64_t group = 1;  // heads of a kv head
  int64_t multiprocessors = 1;
  // The rows times chunks whose results may be apart at once; a row is never cut.
  int64_t most_results = 0;
  int64_t group_rows = 0;  // of a tile of warpgroups; 0: there are none
};

AttentionPlan plan_attention(std::span<const AttentionSlice> slices, const AttentionParams& params,
                             const AttentionSizes& sizes);

// Of rows that decode, each with tiles of its own in turn.
AttentionParts decoding_parts(int64_t num_rows, int64_t most_chunks, const AttentionSizes& sizes);

// Whether chunks are computed apart, as fewer than `enough` units would compute whole rows.
bool splits_attention(int64_t units, int64_t enough, int64_t most_chunks);

}  // namespace paceline::cuda
