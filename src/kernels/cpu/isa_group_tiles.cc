// Products of many rows with quantised matrices in tile registers, where the instruction set has
// them: to the bit what the vectors of isa_group_matmul.cc compute.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/packed_layout.h"

#if defined(PACELINE_ISA_AMX)

#include "kernels/cpu/half_panel.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// So many panels are widened at once.
constexpr int64_t kTilePanels = 4;
constexpr int64_t kPanelHalves = kPanelWidth / kTileColumns;
constexpr int kSumTiles = 4;
// The sums of a group leave their tile so many groups after their products, and are used so many
// after: neither waits for what it needs.
constexpr int kStoreLag = 2;
constexpr int kUseLag = 3;

// Up to 16 rows times neighbouring halves of panels, over one segment.
struct Block {
  const char* inputs = nullptr;  // the first row's codes at the segment's start
  const char* scales = nullptr;  // of the first row and the segment's first group
  int64_t sums = 0;              // bytes from a scale to the sum of its group's inputs
  int64_t input_stride = 0;
  int64_t num_rows = 0;
  char* halves = nullptr;  // as widen_half() left them, kHalfPanelBytes apart
  int64_t num_halves = 0;
  int64_t num_groups = 0;
  int64_t group_size = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t num_columns = 0;      // of the matrix, from the first half's first on
  const float* bias = nullptr;  // of the columns, in the last segment; or nullptr
  bool is_first_segment = false;
};

// Codes of weights with offsets are unsigned, others signed.
template <bool kOffsets, int kSum, int kInput, int kWeight>
PL_INLINE void multiply_tiles() {
  if constexpr (kOffsets) {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0"
                     :
                     : "i"(kSum), "i"(kInput), "i"(kWeight));
  } else {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0"
                     :
                     : "i"(kSum), "i"(kInput), "i"(kWeight));
  }
}

// Tile kSum = inputs times weights of one group.
template <bool kOffsets, int kSum>
PL_INLINE void multiply_group(const char* inputs, int64_t stride, const char* weights,
                              int64_t group_size) {
  constexpr int kInput = kSumTiles + kSum % 2, kWeight = kSumTiles + 2 + kSum % 2;
  zero_tile<kSum>();
  for (int64_t k = 0; k < group_size; k += kRowBytes) {
    load_tile<kWeight>(weights + k * kTileColumns, kRowBytes);
    load_tile<kInput>(inputs + k, stride);
    multiply_tiles<kOffsets, kSum, kInput, kWeight>();
  }
}

// Where each row's scales begin; the last one's stand for those of rows that aren't there.
struct InputRows {
  const char* begins[kTileRows];

  explicit InputRows(const Block& block) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      begins[r] = block.scales + min_of(r, block.num_rows - 1) * block.input_stride;
    }
  }
  Vec splat_at(int row, int64_t at) const {
    float value;
    __builtin_memcpy(&value, begins[row] + at, sizeof(value));
    return splat(value);
  }
};

PL_INLINE void store_half(const Block& block, int64_t half, const HalfPanel& weights,
                          const Vec (&sums)[kTileRows]) {
  const int64_t column = half * kTileColumns;
  const int64_t count = min_of(block.num_columns - column, kTileColumns);
  const Vec factors = load(weights.factors);
  const Vec bias = block.bias == nullptr ? Vec{} : load_upto(block.bias + column, count);
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    if (r == block.num_rows) return;
    float* const out = block.out + r * block.out_stride + column;
    Vec value = sums[r] * factors;
    if (!block.is_first_segment) value = load_upto(out, count) + value;
    if (block.bias != nullptr) value = value + bias;
    store_upto(out, value, count);
  }
}

// Where in a block's halves a step of its product stands.
struct Place {
  int64_t half = 0;
  int64_t group = 0;

  PL_INLINE void advance(Place& place, int64_t num_groups) {
    if (++place.group < num_groups) return;
    place.group = 0;
    ++place.half;
  }
};

// sums[r] += scale * float(sum of integer products), group after group, as multiply_group_tile()
// adds them.
template <bool kOffsets>
void multiply_block(const Block& block) {
  alignas(64) char products[kSumTiles][kTileElements * 4] = {};
  const int64_t size = block.group_size, groups = block.num_groups;
  const int64_t steps = block.num_halves * groups;
  const InputRows rows(block);
  Place multiplied, used;
  Vec sums[kTileRows] = {};
  const auto step = [&]<int kStep>(int64_t i) __attribute__((always_inline)) {
    constexpr int kStored = (kStep + kSumTiles - kStoreLag) % kSumTiles;
    constexpr int kUsed = (kStep + kSumTiles - kUseLag) % kSumTiles;
    if (i < steps) {
      const int64_t k = multiplied.group * size;
      const char* const half = block.halves + multiplied.half * kHalfPanelBytes;
      multiply_group<kOffsets, kStep>(block.inputs + k, block.input_stride, half + k * kTileColumns,
                                      size);
      Place::advance(multiplied, groups);
    }
    if (i >= kStoreLag && i - kStoreLag < steps) store_tile<kStored>(products[kStored], kRowBytes);
    if (i < kUseLag || i - kUseLag >= steps) return;
    const HalfPanel half =
        half_panel_at(block.halves + used.half * kHalfPanelBytes, groups * size, groups);
    const Vec scale = load(half.scales + used.group * kTileColumns);
    const Vec offset = kOffsets ? load(half.offsets + used.group * kTileColumns) : Vec{};
    const int64_t at = used.group * int64_t{sizeof(float)};
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const Ints product = (Ints)load_bits(products[kUsed] + r * kRowBytes);
      const Vec factor = scale * rows.splat_at(r, at);
      sums[r] = fma(__builtin_convertvector(product, Vec), factor, sums[r]);
      if constexpr (kOffsets) sums[r] = fma(offset, rows.splat_at(r, at + block.sums), sums[r]);
    }
    if (used.group + 1 == groups) {
      store_half(block, used.half, half, sums);
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) sums[r] = Vec{};
    }
    Place::advance(used, groups);
  };
  for (int64_t i = 0; i < steps + kUseLag; i += kSumTiles) {
    step.template operator()<0>(i);
    step.template operator()<1>(i + 1);
    step.template operator()<2>(i + 2);
    step.template operator()<3>(i + 3);
  }
}

void configure(int64_t group_size, int64_t num_rows) {
  const int64_t bytes = min_of(group_size, kRowBytes);
  TileConfig config;
  for (int tile = 0; tile < kSumTiles; ++tile) config.set(tile, num_rows);
  config.set(kSumTiles, num_rows, bytes);
  config.set(kSumTiles + 1, num_rows, bytes);
  config.set(kSumTiles + 2, bytes / 4);
  config.set(kSumTiles + 3, bytes / 4);
  config.use();
}

// Segments of neighbouring panels, widened into the task's scratch.
struct Segment {
  int64_t panel = 0;  // the first
  int64_t num_halves = 0;
  int64_t first_k = 0;
  int64_t length = 0;  // none: nothing is left
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

// Asks for part `part` of `parts` of the records that a segment will be widened from.
void ask_for(const GroupTask& task, const Segment& segment, int64_t part, int64_t parts) {
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
      widen_half<kBits>(weights, {panel, panel + record, lane, groups},
                        half_panel_at(to, segment.length, groups));
      to += kHalfPanelBytes;
    }
  });
  finish_stores();
}

// So many blocks of so many rows each, from `row` on, times a widened segment.
// Meanwhile what comes next is asked for.
void multiply_blocks(const GroupTask& task, const Segment& segment, const Segment& next,
                     int64_t row, int64_t num_blocks, int64_t num_rows) {
  if (num_blocks == 0) return;
  const GroupPanels& weights = task.weights;
  const auto multiply = weights.has_offsets ? multiply_block<true> : multiply_block<false>;
  const int64_t column = segment.panel * kPanelWidth;
  const bool is_last = segment.first_k + segment.length == weights.k;
  configure(weights.group_size, num_rows);
  for (int64_t i = 0; i < num_blocks; ++i, row += num_rows) {
    const char* const inputs = static_cast<const char*>(task.inputs) + row * task.input_stride;
    ask_for(task, next, row / num_rows, task.num_rows / num_rows);
    multiply({.inputs = inputs + segment.first_k,
              .scales = inputs + input_code_bytes(weights) +
                        segment.first_k / weights.group_size * int64_t{sizeof(float)},
              .sums = num_groups(weights) * 2 * int64_t{sizeof(float)},
              .input_stride = task.input_stride,
              .num_rows = num_rows,
              .halves = static_cast<char*>(task.scratch),
              .num_halves = segment.num_halves,
              .num_groups = segment.length / weights.group_size,
              .group_size = weights.group_size,
              .out = task.out + row * task.out_stride + column,
              .out_stride = task.out_stride,
              .num_columns = task.n - column,
              .bias = is_last && task.bias != nullptr ? task.bias + column : nullptr,
              .is_first_segment = segment.first_k == 0});
  }
}

// From how many rows on tiles are faster than vectors, which read codes of 8 bits where they stand
// and use as many lanes for short groups as for long ones.
int64_t least_rows(const GroupPanels& weights) {
  if (weights.group_size < 64) return weights.bits == 8 ? 48 : 36;
  return weights.bits == 8 ? 40 : 24;
}

// A segment of some panels is widened into the second-level cache, then meets all rows, of which
// a block's inputs stay in the first-level cache.
void matmul_group_tiles(const GroupTask& task) {
  const GroupPanels& weights = task.weights;
  if (weights.group_size < kLeastTileGroup || task.num_rows < least_rows(weights)) {
    return matmul_groups(task);
  }
  const int64_t blocks = (task.num_rows + kTileRows - 1) / kTileRows;
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
  const int64_t bytes = kTilePanels * kPanelHalves * kHalfPanelBytes;
  table.group_scratch_bytes = max_of(table.group_scratch_bytes, bytes);
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#else

namespace paceline::PACELINE_ISA_NAMESPACE {

void add_group_tile_kernels(KernelTable&) {}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#endif
