// Products of bfloat16 in tile registers, where the instruction set has them.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/packed_layout.h"

#if defined(PACELINE_ISA_AMX)

#include "kernels/cpu/tile_blocks.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int64_t kElementBytes = static_cast<int64_t>(sizeof(Bf16));

// A single row is multiplied in vector registers, which read weights faster than tiles do, with the
// bits of tiles. At most this many panels are read at once.
constexpr int64_t kRowPanels = 4;
// So are this many rows where K is less than a step (adapters of low rank): a tile would need a
// padded copy of each panel.
constexpr int64_t kShortRows = 4;

// Treats denormals as zeros, in and out, while it lives.
class DenormalsAreZeros {
 public:
  DenormalsAreZeros() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }
  ~DenormalsAreZeros() { _mm_setcsr(before_); }
  DenormalsAreZeros(const DenormalsAreZeros&) = delete;
  DenormalsAreZeros& operator=(const DenormalsAreZeros&) = delete;

 private:
  uint32_t before_;
};

// sums[v] += the products of `num_pairs` pairs of K, up to a step, with the panels' columns 16 v to
// 16 v + 15. Even and odd products are summed apart, from zero in ascending order, then added.
template <int kPanels>
PL_INLINE void add_row_step(const Bf16* inputs, const Bf16* const (&panels)[kPanels],
                            int64_t num_pairs, int64_t prefetch_bytes, Vec (&sums)[2 * kPanels]) {
  Vec even[2 * kPanels] = {};
  Vec odd[2 * kPanels] = {};
  for (int64_t pair = 0; pair < num_pairs; ++pair) {
    uint32_t x;
    __builtin_memcpy(&x, inputs + 2 * pair, sizeof(x));
    const Vec x_even = as_floats(splat_bits(x << 16));
    const Vec x_odd = as_floats(splat_bits(x & 0xFFFF0000u));
#pragma GCC unroll 8
    for (int v = 0; v < 2 * kPanels; ++v) {
      const Bf16* const from = panels[v / 2] + pair * 2 * kPanelWidth + v % 2 * 2 * kLanes;
      const Uints weights = load_bits(from);
      __builtin_prefetch(reinterpret_cast<const char*>(from) + prefetch_bytes);
      even[v] = fma(x_even, as_floats(weights << 16), even[v]);
      odd[v] = fma(x_odd, as_floats(weights & 0xFFFF0000u), odd[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < 2 * kPanels; ++v) sums[v] = sums[v] + (even[v] + odd[v]);
}

// One row times `kPanels` panels; sums are laid out, and begin, as those of multiply_low.
template <int kPanels>
void multiply_row_panels(const Block& block, const Bf16* weights, float* sums) {
  const Bf16* panels[kPanels];
  for (int panel = 0; panel < kPanels; ++panel) {
    panels[panel] = weights + panel * block.panel_elements;
  }
  Vec totals[2 * kPanels] = {};
  if (block.continues) {
    for (int v = 0; v < 2 * kPanels; ++v) totals[v] = load(sums + v * kTileElements);
  }
  for (int64_t step = 0; step < block.num_steps; ++step) {
    add_row_step<kPanels>(block.inputs + step * kTileDepth, panels, kTileDepth / 2,
                          block.prefetch_bytes, totals);
    for (const Bf16*& panel : panels) panel += kStepWeights;
  }
  if (block.tail > 0) {
    add_row_step<kPanels>(block.inputs + block.num_steps * kTileDepth, panels, block.tail / 2,
                          block.prefetch_bytes, totals);
  }
  for (int v = 0; v < 2 * kPanels; ++v) store(sums + v * kTileElements, totals[v]);
}

void multiply_row(const Block& block, int64_t num_panels, float* sums) {
  const DenormalsAreZeros denormals;
  for (int64_t panel = 0; panel < num_panels;) {
    const Bf16* const weights = block.weights + panel * block.panel_elements;
    float* const to = sums + panel * 2 * kTileElements;
    if (panel + 4 <= num_panels) {
      multiply_row_panels<4>(block, weights, to);
      panel += 4;
    } else if (panel + 2 <= num_panels) {
      multiply_row_panels<2>(block, weights, to);
      panel += 2;
    } else {
      multiply_row_panels<1>(block, weights, to);
      panel += 1;
    }
  }
}

// The outputs of a block.
struct Target {
  float* out;
  int64_t out_stride;
  int64_t num_columns;  // of the matrix, from the block's first on
  const float* bias;    // at the block's first column, in the last segment; or nullptr
  bool adds;            // to the outputs instead of replacing them
  bool continues;       // the outputs that are there
};

// Rows of 16 sums, `stride` elements apart.
void add_sums(const float* sums, int64_t stride, int64_t num_rows, const Target& target) {
  const int64_t count = min_of(target.num_columns, kTileColumns);
  if (count <= 0) return;
  const Vec bias = target.bias == nullptr ? Vec{} : load_upto(target.bias, count);
  for (int64_t row = 0; row < num_rows; ++row) {
    float* const out = target.out + row * target.out_stride;
    Vec value = load(sums + row * stride);
    if (target.adds) value = load_upto(out, count) + value;
    if (target.bias != nullptr) value = value + bias;
    store_upto(out, value, count);
  }
}

Target behind(const Target& target, int64_t columns) {
  Target next = target;
  next.out += columns;
  next.num_columns -= columns;
  if (next.bias != nullptr) next.bias += columns;
  return next;
}

// The outputs of some rows and up to 16 columns, `stride` elements apart.
void load_sums(const Target& target, int64_t num_rows, float* sums, int64_t stride) {
  const int64_t count = min_of(target.num_columns, kTileColumns);
  for (int64_t row = 0; row < num_rows; ++row) {
    const Vec value = count <= 0 ? Vec{} : load_upto(target.out + row * target.out_stride, count);
    store(sums + row * stride, value);
  }
}

void load_high(int64_t num_rows, const Target& target) {
  if (target.num_columns >= kPanelWidth) return load_high_sums(target.out, target.out_stride);
  alignas(64) float sums[kBlockRows * kPanelWidth];
  load_sums(target, num_rows, sums, kPanelWidth);
  load_sums(behind(target, kTileColumns), num_rows, sums + kTileColumns, kPanelWidth);
  finish_stores();
  load_high_sums(sums, kPanelWidth);
}

void store_high(int64_t num_rows, const Target& target) {
  alignas(64) float sums[kBlockRows * kPanelWidth];
  // Sums are stored straight to the outputs if nothing is to be added to them.
  const bool is_straight =
      !target.adds && target.bias == nullptr && target.num_columns >= kPanelWidth;
  float* const to = is_straight ? target.out : sums;
  const int64_t stride = is_straight ? target.out_stride : kPanelWidth;
  const auto stride_bytes = static_cast<size_t>(stride) * sizeof(float);
  _tile_stored(0, to, stride_bytes);
  _tile_stored(1, to + kTileColumns, stride_bytes);
  _tile_stored(2, to + kTileRows * stride, stride_bytes);
  _tile_stored(3, to + kTileRows * stride + kTileColumns, stride_bytes);
  if (is_straight) return;
  add_sums(sums, kPanelWidth, num_rows, target);
  add_sums(sums + kTileColumns, kPanelWidth, num_rows, behind(target, kTileColumns));
}

void multiply_and_store(const Block& block, const Target& target, int64_t num_panels) {
  if (block.num_rows > kTileRows) {
    if (target.continues) {
      load_high(block.num_rows, target);
    } else {
      clear_high();
    }
    multiply_high(block);
    return store_high(block.num_rows, target);
  }
  alignas(64) float sums[kLowPanels * 2 * kTileElements];
  if (target.continues) {
    for (int64_t tile = 0; tile < 2 * num_panels; ++tile) {
      load_sums(behind(target, tile * kTileColumns), block.num_rows, sums + tile * kTileElements,
                kTileColumns);
    }
    finish_stores();
  }
  const bool is_short = block.num_steps == 0 && block.num_rows <= kShortRows;
  if (block.num_rows == 1 || is_short) {
    Block one = block;
    for (int64_t row = 0; row < block.num_rows; ++row) {
      multiply_row(one, num_panels, sums + row * kTileColumns);
      one.inputs += block.input_stride / kElementBytes;
    }
  } else {
    multiply_low(block, num_panels, sums);
  }
  for (int64_t tile = 0; tile < 2 * num_panels; ++tile) {
    add_sums(sums + tile * kTileElements, kTileColumns, block.num_rows,
             behind(target, tile * kTileColumns));
  }
}

// How many panels a block of up to 16 rows is multiplied by before the next segment.
int64_t most_panels(const MatmulTask& task, int64_t num_rows) {
  return task.num_rows == 1 && num_rows == 1 ? min_of(kRowPanels, task.streams.panels) : kLowPanels;
}

// The part that a block of rows prefetches of each of the panels that come next.
struct NextPanels {
  uintptr_t part = 0;      // of the first panel
  int64_t step_bytes = 0;  // a step; 0: there are none
};

// A block of rows times panels [first, last), of the segment that begins at first_k.
void multiply_panels(const MatmulTask& task, int64_t first_k, int64_t row, int64_t num_rows,
                     int64_t first, int64_t last, const NextPanels& next) {
  const int64_t length = min_of(first_k + task.segment_length, task.padded_k) - first_k;
  const bool has_bias = first_k + length == task.padded_k && task.bias != nullptr;
  const bool continues = task.outputs == Outputs::continued;
  const auto* const inputs =
      static_cast<const char*>(task.inputs) + row * task.input_stride + first_k * kElementBytes;
  const int64_t panels_at_once = num_rows > kTileRows ? 1 : most_panels(task, num_rows);
  const int64_t panel_bytes = task.panel_elements * kElementBytes;
  for (int64_t panel = first; panel < last; panel += panels_at_once) {
    const int64_t column = panel * kPanelWidth;
    multiply_and_store({.inputs = reinterpret_cast<const Bf16*>(inputs),
                        .input_stride = task.input_stride,
                        .num_rows = num_rows,
                        .weights = static_cast<const Bf16*>(task.panels) +
                                   panel * task.panel_elements + first_k * kPanelWidth,
                        .panel_elements = task.panel_elements,
                        .num_steps = length / kTileDepth,
                        .tail = length % kTileDepth,
                        .prefetch_bytes = task.streams.prefetch_bytes,
                        .continues = continues,
                        .next = next.part + static_cast<uintptr_t>((panel - first) * panel_bytes),
                        .next_step = next.step_bytes},
                       {.out = task.out + row * task.out_stride + column,
                        .out_stride = task.out_stride,
                        .num_columns = task.n - column,
                        .bias = has_bias ? task.bias + column : nullptr,
                        .adds = task.outputs == Outputs::added_to || (first_k > 0 && !continues),
                        .continues = continues},
                       min_of(panels_at_once, last - panel));
  }
}

// Some neighbouring panels in one segment of K.
struct PanelGroup {
  int64_t first_k = 0;
  int64_t first = 0;
  int64_t last = 0;
};

PanelGroup group_at(const MatmulTask& task, int64_t first_k, int64_t panel) {
  return {first_k, panel, min_of(panel + kGroupPanels, task.last_panel)};
}

// All groups of a segment come before those of the next one. An empty one comes behind the last.
PanelGroup next_group(const MatmulTask& task, const PanelGroup& group) {
  if (group.last < task.last_panel) return group_at(task, group.first_k, group.last);
  const int64_t next_k = group.first_k + task.segment_length;
  if (next_k < task.padded_k) return group_at(task, next_k, task.first_panel);
  return group_at(task, 0, task.last_panel);
}

// What block `index` of `count` blocks of rows prefetches of the next group; behind the task's last
// one, of the matrix's next panels.
NextPanels next_panels(const MatmulTask& task, const PanelGroup& group, int64_t index,
                       int64_t count) {
  const PanelGroup next = next_group(task, group);
  if (next.first * kPanelWidth >= task.n) return {};
  const int64_t end_k = min_of(group.first_k + task.segment_length, task.padded_k);
  const int64_t step_bytes = round_up(kStepWeights * kElementBytes / count, kRowBytes);
  const int64_t offset =
      (next.first * task.panel_elements + next.first_k * kPanelWidth) * kElementBytes +
      index * ((end_k - group.first_k) / kTileDepth) * step_bytes;
  return {reinterpret_cast<uintptr_t>(task.panels) + static_cast<uintptr_t>(offset), step_bytes};
}

// Some blocks of rows.
void multiply_chunk(const MatmulTask& task, int64_t first_row, int64_t blocks) {
  configure(kTileRows, kTileRows);
  PanelGroup group = group_at(task, 0, task.first_panel);
  for (; group.first < group.last; group = next_group(task, group)) {
    for (int64_t i = 0; i < blocks; ++i) {
      multiply_panels(task, group.first_k, first_row + i * kBlockRows, kBlockRows, group.first,
                      group.last, next_panels(task, group, i, blocks));
    }
  }
}

// Up to 31 rows.
void multiply_few(const MatmulTask& task, int64_t row, int64_t count) {
  configure(min_of(count, kTileRows), max_of(count - kTileRows, 0));
  const int64_t group = count > kTileRows ? kGroupPanels : most_panels(task, count);
  for (int64_t panel = task.first_panel; panel < task.last_panel; panel += group) {
    const int64_t last = min_of(panel + group, task.last_panel);
    for (int64_t k = 0; k < task.padded_k; k += task.segment_length) {
      multiply_panels(task, k, row, count, panel, last, {});
    }
  }
}

// While a segment's panels pass, a chunk of rows stays in the second-level cache.
void matmul_tiles(const MatmulTask& task) {
  const int64_t blocks = task.num_rows / kBlockRows, whole = blocks * kBlockRows;
  const int64_t row_bytes = min_of(task.segment_length, task.padded_k) * kElementBytes;
  const int64_t most = max_of(kChunkInputBytes / row_bytes / kBlockRows, 1);
  const int64_t chunks = round_up(blocks, most) / most;
  for (int64_t i = 0; i < chunks; ++i) {
    const int64_t first = blocks * i / chunks, last = blocks * (i + 1) / chunks;
    multiply_chunk(task, first * kBlockRows, last - first);
  }
  if (whole < task.num_rows) multiply_few(task, whole, task.num_rows - whole);
  _tile_release();
}

// Rounds to bfloat16, with zeros up to a whole step: rows have room for it.
void round_row(const float* x, int64_t k, int64_t padded_k, void* input) {
  auto* const to = static_cast<Bf16*>(input);
  for_each_vector(
      k, [&](int64_t i, int64_t count) { store_upto(to + i, load_upto(x + i, count), count); });
  for (int64_t i = k; i < round_up(padded_k, kTileDepth); ++i) to[i] = {0};
}

constexpr int64_t kRunProducts = 4;

// For the roofline: four independent chains of products.
float run_tiles(int64_t iterations, float seed) {
  alignas(64) float values[kTileRows * kTileColumns];
  for (float& value : values) value = seed;
  configure(kTileRows, 0);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, values, kRowBytes);
  _tile_loadd(6, values, kRowBytes);
  for (int64_t i = 0; i < iterations; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 6);
    _tile_dpbf16ps(2, 4, 6);
    _tile_dpbf16ps(3, 4, 6);
  }
  float total = 0;
  _tile_stored(0, values, kRowBytes);
  total += values[0];
  _tile_stored(1, values, kRowBytes);
  total += values[0];
  _tile_stored(2, values, kRowBytes);
  total += values[0];
  _tile_stored(3, values, kRowBytes);
  total += values[0];
  _tile_release();
  return total;
}

}  // namespace

void add_tile_kernels(KernelTable& table) {
  table.matmul[2] = matmul_tiles;
  table.tile_rows[2] = kBlockRows;
  table.stream_panels[2] = [](int64_t num_rows) { return num_rows == 1 ? kRowPanels : int64_t{0}; };
  table.prepare_row[2] = round_row;
  table.input_bytes[2] = sizeof(Bf16);
  table.float8_rows = 0;  // its sums are those of vectors
  table.run_bf16 = run_tiles;
  table.run_bf16_flops = kRunProducts * 2 * kTileRows * kTileColumns * kTileDepth;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#else

namespace paceline::PACELINE_ISA_NAMESPACE {

void add_tile_kernels(KernelTable&) {}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#endif
