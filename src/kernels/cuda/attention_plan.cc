#include "kernels/cuda/attention_plan.h"

#include <algorithm>
#include <limits>

#include "base/divide_up.h"
#include "kernels/cuda/code/attention_tiles.h"

namespace paceline::cuda {
namespace {

AttentionRow row_of(const AttentionSlice& slice, int64_t index, const AttentionParams& params) {
  const int64_t position = slice.first_position + index;
  const int64_t num_keys = slice.first_position + slice.num_rows;
  AttentionRow row{.row = slice.first_row + index,
                   .first = 0,
                   .end = params.bidirectional ? num_keys : position + 1,
                   .table = 0};
  if (params.window > 0) {
    row.first = std::max<int64_t>(0, position - params.window + 1);
    row.end = std::min(row.end, position + params.window);
  }
  return row;
}

int64_t num_chunks(const AttentionRow& row) {
  return divide_up(row.end, kChunkKeys) - row.first / kChunkKeys;
}

// A kind of tiles.
struct TileKind {
  int64_t height = 0;          // packed rows
  int64_t blocks_at_once = 0;  // of a multiprocessor; 0: chunks are never computed apart
};

// The tiles of one kind.
class PartPlanner {
 public:
  PartPlanner(const AttentionParams& params, const AttentionSizes& sizes, const TileKind& kind,
              AttentionPlan& plan, std::vector<AttentionPart>& parts)
      : params_(params), sizes_(sizes), kind_(kind), plan_(plan), parts_(parts) {}

  void add(std::span<const AttentionSlice> slices) {
    int64_t tiles = 0, chunks = 0;
    for (const AttentionSlice& slice : slices) {
      tiles += divide_up(slice.num_rows * sizes_.group, height());
      chunks = std::max(chunks, most_chunks(slice));
    }
    is_split_ = kind_.blocks_at_once > 0 &&
                splits_attention(tiles * sizes_.kv_heads,
                                 kind_.blocks_at_once * sizes_.multiprocessors, chunks);
    for (const AttentionSlice& slice : slices) add_slice(slice);
    for (const AttentionPart& part : parts_) sort_tiles(part);
  }

 private:
  int64_t height() const { return kind_.height; }

  int64_t most_chunks(const AttentionSlice& slice) const {
    int64_t most = 0;
    for (int64_t i = 0; i < slice.num_rows; ++i) {
      most = std::max(most, num_chunks(row_of(slice, i, params_)));
    }
    return most;
  }

  // Of rows with `chunks` chunks, how many the part has room for.
  int64_t room(const AttentionPart& part, int64_t chunks) const {
    if (!is_split_) return std::numeric_limits<int64_t>::max();
    return sizes_.most_results / std::max(part.most_chunks, chunks) - part.num_rows;
  }

  void add_slice(const AttentionSlice& slice) {
    const int64_t chunks = most_chunks(slice), table = std::ssize(plan_.tables);
    plan_.tables.insert(plan_.tables.end(), slice.block_table.begin(), slice.block_table.end());
    for (int64_t begin = 0; begin < slice.num_rows;) {
      if (parts_.empty() || room(parts_.back(), chunks) <= 0) {
        parts_.push_back({.first_row = std::ssize(plan_.rows),
                          .first_tile = std::ssize(plan_.tiles),
                          .is_split = is_split_});
      }
      AttentionPart& part = parts_.back();
      const int64_t count =
          std::min(slice.num_rows - begin, std::max<int64_t>(1, room(part, chunks)));
      add_tiles(part, count);
      for (int64_t i = begin; i < begin + count; ++i) {
        plan_.rows.push_back(row_of(slice, i, params_));
        plan_.rows.back().table = table;
      }
      part.num_rows += count;
      part.most_chunks = std::max(part.most_chunks, chunks);
      begin += count;
    }
  }

  // Tiles of the part's next `num_rows` rows.
  void add_tiles(AttentionPart& part, int64_t num_rows) {
    const int64_t group = sizes_.group;
    for (int64_t packed = 0; packed < num_rows * group; packed += height()) {
      plan_.tiles.push_back(
          {.first_row = part.num_rows + packed / group,
           .skipped = static_cast<int32_t>(packed % group),
           .count = static_cast<int32_t>(std::min(height(), num_rows * group - packed))});
      ++part.num_tiles;
    }
  }

  // The longest first, so that none of them is alone at the end.
  void sort_tiles(const AttentionPart& part) {
    const auto end_of = [&](const AttentionTile& tile) {
      const int64_t last = tile.first_row + (tile.skipped + tile.count - 1) / sizes_.group;
      return plan_.rows[static_cast<size_t>(part.first_row + last)].end;
    };
    const auto first = plan_.tiles.begin() + part.first_tile;
    std::stable_sort(first, first + part.num_tiles,
                     [&](const auto& a, const auto& b) { return end_of(a) > end_of(b); });
  }

  const AttentionParams& params_;
  const AttentionSizes& sizes_;
  TileKind kind_;
  AttentionPlan& plan_;
  std::vector<AttentionPart>& parts_;
  bool is_split_ = false;
};

}  // namespace

int64_t AttentionParts::num_rows() const {
  int64_t rows = 0;
  for (const AttentionPart& part : small) rows += part.num_rows;
  for (const AttentionPart& part : large) rows += part.num_rows;
  for (const AttentionPart& part : grouped) rows += part.num_rows;
  return rows;
}

int64_t AttentionParts::most_chunks() const {
  int64_t most = 0;
  for (const AttentionPart& part : small) most = std::max(most, part.most_chunks);
  for (const AttentionPart& part : large) most = std::max(most, part.most_chunks);
  for (const AttentionPart& part : grouped) most = std::max(most, part.most_chunks);
  return most;
}

namespace {

// Whether tiles of warpgroups, which compute all chunks of their rows, keep half of the
// multiprocessors busy.
bool fills_groups(std::span<const AttentionSlice> slices, const AttentionSizes& sizes) {
  if (sizes.group_rows == 0) return false;
  int64_t tiles = 0;
  for (const AttentionSlice& slice : slices) {
    tiles += divide_up(slice.num_rows * sizes.group, sizes.group_rows);
  }
  return 2 * tiles * sizes.kv_heads >= sizes.multiprocessors;
}

}  // namespace

AttentionPlan plan_attention(std::span<const AttentionSlice> slices, const AttentionParams& params,
                             const AttentionSizes& sizes) {
  std::vector<AttentionSlice> small, large;  // small ones fit the tile of one warp
  for (const AttentionSlice& slice : slices) {
    (slice.num_rows * sizes.group <= kTileRows ? small : large).push_back(slice);
  }
  AttentionPlan plan;
  const TileKind of_warp{kTileRows, kTileBlocks<1>};
  const TileKind of_warps{kPromptWarps * kTileRows, kTileBlocks<kPromptWarps>};
  PartPlanner(params, sizes, of_warp, plan, plan.parts.small).add(small);
  if (fills_groups(large, sizes)) {
    PartPlanner(params, sizes, {.height = sizes.group_rows}, plan, plan.parts.grouped).add(large);
  } else {
    PartPlanner(params, sizes, of_warps, plan, plan.parts.large).add(large);
  }
  return plan;
}

AttentionParts decoding_parts(int64_t num_rows, int64_t most_chunks, const AttentionSizes& sizes) {
  const int64_t tiles_of_row = divide_up(sizes.group, int64_t{kTileRows});
  const bool is_split = splits_attention(num_rows * tiles_of_row * sizes.kv_heads,
                                         kTileBlocks<1> * sizes.multiprocessors, most_chunks);
  const int64_t at_once =
      is_split ? std::max<int64_t>(1, sizes.most_results / most_chunks) : num_rows;
  AttentionParts parts;
  for (int64_t first = 0; first < num_rows; first += at_once) {
    const int64_t count = std::min(at_once, num_rows - first);
    parts.small.push_back({.first_row = first,
                           .num_rows = count,
                           .num_tiles = count * tiles_of_row,
                           .most_chunks = most_chunks,
                           .is_split = is_split});
  }
  return parts;
}

bool splits_attention(int64_t units, int64_t enough, int64_t most_chunks) {
  constexpr int64_t kMostChunks = 65535;  // along z of the grid
  return most_chunks > 1 && most_chunks <= kMostChunks && units < enough;
}

}  // namespace paceline::cuda
