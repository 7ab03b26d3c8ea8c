// Products of many rows with quantised matrices in tile registers, where the instruction set has
// them. Their bits are those of the vectors of isa_group_matmul.cc.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/packed_layout.h"

#if defined(PACELINE_ISA_AMX)

#include "kernels/cpu/group_block.h"
#include "kernels/cpu/plane_block.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// Panels widened at once.
constexpr int64_t kTilePanels = 4;
constexpr int64_t kPanelHalves = kPanelWidth / kTileColumns;

// Segments of neighbouring panels, widened into the task's scratch.
struct Segment {
  int64_t panel = 0;  // the first
  int64_t num_halves = 0;
  int64_t first_k = 0;
  int64_t length = 0;  // 0: behind the last segment
};

Segment segment_at(const GroupTask& task, int64_t panel, int64_t first_k) {
  if (panel >= task.last_panel) return {};
  const int64_t end = min_of(panel + kTilePanels, task.last_panel);
  const int64_t columns = min_of(end * kPanelWidth, task.n) - panel * kPanelWidth;
  return {.panel = panel,
          .num_halves = (columns + kTileColumns - 1) / kTileColumns,
          .first_k = first_k,
          .length = min_of(kSegmentLength, task.weights.k - first_k)};
}

Segment next_segment(const GroupTask& task, const Segment& segment) {
  const int64_t k = segment.first_k + kSegmentLength;
  if (k < task.weights.k) return segment_at(task, segment.panel, k);
  return segment_at(task, segment.panel + kTilePanels, 0);
}

// Prefetches part `part` of `parts` of a segment's records, before it is widened.
void prefetch_segment(const GroupTask& task, const Segment& segment, int64_t part, int64_t parts) {
  const GroupPanels& weights = task.weights;
  const RecordLayout layout(weights);
  const int64_t bytes = layout.bytes_of(segment.length / weights.group_size);
  const int64_t step = (bytes / kRowBytes / parts + 1) * kRowBytes;
  const int64_t begin = min_of(part * step, bytes), end = min_of(begin + step, bytes);
  const char* from = static_cast<const char*>(weights.panels) +
                     segment.panel * weights.panel_bytes + kPanelHeadBytes +
                     layout.bytes_of(segment.first_k / weights.group_size);
  for (int64_t half = 0; half < segment.num_halves; half += kPanelHalves) {
    for (int64_t at = begin; at < end; at += kRowBytes) {
      __builtin_prefetch(from + at, 0, kSecondLevel);
    }
    from += weights.panel_bytes;
  }
}

// Whether sums are totals of several groups, whose codes are widened with their multiples.
bool has_planes(const GroupPanels& weights) {
  return weights.groups_per_factor > 1 && weights.input_length == kMostSharedInputs;
}

void widen_segment(const GroupTask& task, const Segment& segment) {
  const GroupPanels& weights = task.weights;
  const int64_t groups = segment.length / weights.group_size;
  const char* const first = static_cast<const char*>(weights.panels);
  const int64_t record =
      kPanelHeadBytes + RecordLayout(weights).bytes_of(segment.first_k / weights.group_size);
  auto* to = static_cast<char*>(task.scratch);
  with_code_bits(weights.bits, [&]<int kBits>() {
    for (int64_t half = 0; half < segment.num_halves; ++half) {
      const char* const panel = first + (segment.panel + half / kPanelHalves) * weights.panel_bytes;
      const int64_t lane = half % kPanelHalves * kTileColumns;
      const PanelPart part = {panel, panel + record, lane, groups};
      if (has_planes(weights)) {
        widen_planes<kBits>(weights, part,
                            plane_panel_at(to, segment.length / weights.input_length));
        to += kPlanePanelBytes;
      } else {
        widen_half<kBits>(weights, part, half_panel_at(to, segment.length, groups));
        to += kHalfPanelBytes;
      }
    }
  });
  finish_stores();
}

using BlockProduct = void (*)(const TileBlock& block);

template <bool kOffsets>
BlockProduct group_block_product(const GroupPanels& weights) {
  if (weights.input_length > weights.group_size) return multiply_group_block<kOffsets, 1, true>;
  if (weights.group_size > kRowBytes) return multiply_group_block<kOffsets, 2, false>;
  return multiply_group_block<kOffsets, 1, false>;
}

BlockProduct block_product(const GroupPanels& weights) {
  if (has_planes(weights)) {
    return weights.has_offsets ? multiply_plane_block<true> : multiply_plane_block<false>;
  }
  return weights.has_offsets ? group_block_product<true>(weights)
                             : group_block_product<false>(weights);
}

// `num_blocks` blocks of `num_rows` rows, from `row` on, times a widened segment. Meanwhile the
// next segment is prefetched.
void multiply_blocks(const GroupTask& task, const Segment& segment, const Segment& next,
                     int64_t row, int64_t num_blocks, int64_t num_rows) {
  if (num_blocks == 0) return;
  const GroupPanels& weights = task.weights;
  const auto multiply = block_product(weights);
  const int64_t first_group = segment.first_k / weights.group_size;
  const int64_t column = segment.panel * kPanelWidth;
  const bool is_last = segment.first_k + segment.length == weights.k;
  if (has_planes(weights)) {
    configure_plane_tiles(num_rows);
  } else {
    configure_group_tiles(weights.group_size, num_rows);
  }
  for (int64_t i = 0; i < num_blocks; ++i, row += num_rows) {
    const char* const inputs = static_cast<const char*>(task.inputs) + row * task.input_stride;
    prefetch_segment(task, next, row / num_rows, task.num_rows / num_rows);
    multiply({.inputs = inputs + segment.first_k,
              .scales = inputs + input_code_bytes(weights) + first_group * int64_t{sizeof(float)},
              .sums = input_sums(weights, first_group),
              .input_stride = task.input_stride,
              .num_rows = num_rows,
              .halves = static_cast<char*>(task.scratch),
              .num_halves = segment.num_halves,
              .num_groups = segment.length / weights.group_size,
              .group_size = weights.group_size,
              .groups_per_input = weights.input_length / weights.group_size,
              .out = task.out + row * task.out_stride + column,
              .out_stride = task.out_stride,
              .num_columns = task.n - column,
              .bias = is_last && task.bias != nullptr ? task.bias + column : nullptr,
              .is_first_segment = segment.first_k == 0});
  }
}

// The least number of rows for which tiles are faster than vectors. It is higher for codes of 8
// bits, which vectors needn't widen, and for short groups, which fill a tile less.
int64_t least_rows(const GroupPanels& weights) {
  if (has_planes(weights)) return weights.bits == 8 ? 44 : 30;
  if (weights.group_size < 64) return weights.bits == 8 ? 48 : 24;
  return weights.bits == 8 ? 40 : 24;
}

bool fits_tiles(const GroupPanels& weights) {
  if (weights.groups_per_factor > 1) return has_planes(weights);
  return weights.group_size >= kLeastTileGroup;
}

// A segment of some panels is widened into the second-level cache, then multiplied by all rows. The
// inputs of one block of rows stay in the first-level cache.
void matmul_group_tiles(const GroupTask& task) {
  const GroupPanels& weights = task.weights;
  if (!fits_tiles(weights) || task.num_rows < least_rows(weights)) return matmul_groups(task);
  const int64_t most_rows = has_planes(weights) ? kPlaneRows : kTileRows;
  const int64_t blocks = (task.num_rows + most_rows - 1) / most_rows;
  const int64_t low_rows = task.num_rows / blocks, high_blocks = task.num_rows % blocks;
  Segment segment = segment_at(task, task.first_panel, 0);
  while (segment.length > 0) {
    const Segment next = next_segment(task, segment);
    widen_segment(task, segment);
    multiply_blocks(task, segment, next, 0, high_blocks, low_rows + 1);
    multiply_blocks(task, segment, next, high_blocks * (low_rows + 1), blocks - high_blocks,
                    low_rows);
    segment = next;
  }
  _tile_release();
}

}  // namespace

void add_group_tile_kernels(KernelTable& table) {
  table.matmul_groups = matmul_group_tiles;
  // More than the vectors need.
  table.group_scratch_bytes = [](const GroupPanels& weights) {
    return kTilePanels * kPanelHalves * (has_planes(weights) ? kPlanePanelBytes : kHalfPanelBytes);
  };
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#else

namespace paceline::PACELINE_ISA_NAMESPACE {

void add_group_tile_kernels(KernelTable&) {}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#endif
