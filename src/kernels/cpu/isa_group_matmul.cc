// Products with quantised matrices in integers. Tiles of few rows read codes of any width, tiles of
// many rows codes of 4 and 8 bits: panels of other widths are widened first, with the same sums.
#include "kernels/cpu/group_product.h"
#include "kernels/cpu/isa_kernels.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// The least number of rows for which widening a panel pays, where unpacking isn't free: of 4 bits,
// and of other widths.
constexpr int64_t kWideningRows = 3 * kMaxGroupRows;
constexpr int64_t kOddWideningRows = 2 * kMaxStreamingRows + 1;
// One panel of one segment: codes of 8 bits, and scales and offsets of the shortest groups.
constexpr int64_t kScratchBytes =
    kSegmentLength * kPanelWidth + kSegmentLength / kChunkElements * kPanelWidth * 4;
// Inputs that the second-level cache holds at once.
constexpr int64_t kBlockInputBytes = 768 * 1024;

// The most rows of a tile that reads stored codes of kBits.
template <int kBits>
constexpr int kMostRows = kBits == 4 || kBits == 8 ? kMaxGroupRows
                                                   : min_of(kMaxGroupRows, kMaxStreamingRows);

template <int kBits, int kVectors, int kRows = min_of(kGroupSums / kVectors, kMostRows<kBits>)>
void multiply_rows(int64_t num_rows, const GroupTile& tile) {
  if constexpr (kRows > 0) {
    if (num_rows == kRows) {
      multiply_group_tile<kBits, kRows, kVectors>(tile);
    } else {
      multiply_rows<kBits, kVectors, kRows - 1>(num_rows, tile);
    }
  }
}

template <int kBits>
void multiply(int64_t num_rows, int64_t num_vectors, const GroupTile& tile) {
  if constexpr (kMaxGroupVectors >= 8) {
    if (num_vectors == 8) return multiply_rows<kBits, 8>(num_rows, tile);
  }
  if (num_vectors == 4) return multiply_rows<kBits, 4>(num_rows, tile);
  multiply_rows<kBits, 2>(num_rows, tile);
}

using Multiply = void (*)(int64_t num_rows, int64_t num_vectors, const GroupTile& tile);

Multiply choose_multiply(int bits) {
  Multiply chosen = nullptr;
  with_code_bits(bits, [&]<int kBits>() { chosen = multiply<kBits>; });
  return chosen;
}

int64_t num_tiles(int64_t num_rows, int bits) {
  const int64_t most_rows = bits == 4 || bits == 8 ? kMostRows<8> : kMostRows<6>;
  return (num_rows + most_rows - 1) / most_rows;
}

// The width of the widest tiles of `num_rows` rows whose sums stay in registers.
int64_t tile_vectors(int64_t num_rows, int bits) {
  const int64_t tiles = num_tiles(num_rows, bits);
  const int64_t tile_rows = (num_rows + tiles - 1) / tiles;
  int64_t vectors = kMaxGroupVectors;
  while (vectors > kMinGroupVectors && vectors * tile_rows > kGroupSums) vectors /= 2;
  return vectors;
}

int64_t panels_at_once(int64_t num_rows, int bits) {
  return max_of(tile_vectors(num_rows, bits) / kPanelVectors, 1);
}

// Tiles of few rows in products of many find weights that the tile before prefetched: a distance of
// 128 elements of 32 columns is enough.
int64_t prefetch_distance(const GroupTask& task) {
  return task.num_rows <= kMaxStreamingRows ? task.streams.prefetch_bytes : task.weights.bits * 512;
}

// One segment of some panels, as tiles read it.
struct Segment {
  int64_t first_k = 0;
  int64_t length = 0;
  const char* panels = nullptr;   // the first panel's head
  const char* records = nullptr;  // its first record of the segment
  RecordLayout layout;
  int64_t panel_bytes = 0;
  int bits = 0;
  const char* next = nullptr;  // the bytes behind it in memory, about as many as this segment has
  const char* next_end = nullptr;
};

// The tile of rows from `row` on and of columns from vector `vector` of the segment's first panel
// (panel `panel` of the matrix) on.
GroupTile make_tile(const GroupTask& task, const Segment& segment, int64_t row, int64_t panel,
                    int64_t vector) {
  const int64_t skipped = vector / kPanelVectors * segment.panel_bytes;
  const int64_t lane = vector % kPanelVectors * kLanes;
  const int64_t column = panel * kPanelWidth + vector * kLanes;
  const GroupPanels& weights = task.weights;
  const int64_t groups = num_groups(weights);
  const int64_t first_group = segment.first_k / weights.group_size;
  const char* const inputs = static_cast<const char*>(task.inputs) + row * task.input_stride;
  const bool is_last = segment.first_k + segment.length == weights.k;
  return {.codes = inputs + input_code_bytes(weights, segment.first_k),
          .scales = inputs + input_code_bytes(weights) + first_group * 4,
          .starts = groups * 4,
          .sums = input_sums(weights, first_group),
          .input_stride = task.input_stride,
          .records = segment.records + skipped,
          .layout = segment.layout,
          .factors = segment.panels + skipped + lane * 4,
          .panel_bytes = segment.panel_bytes,
          .first_lane = lane,
          .group_size = weights.group_size,
          .num_groups = segment.length / weights.group_size,
          .out = task.out + row * task.out_stride + column,
          .out_stride = task.out_stride,
          .num_columns = task.n - column,
          .bias = is_last && task.bias != nullptr ? task.bias + column : nullptr,
          .is_first_segment = segment.first_k == 0};
}

// Rows [row, row + count) times `num_panels` panels of a segment, from `panel` on.
void multiply_segment(const GroupTask& task, const Segment& segment, int64_t row, int64_t count,
                      int64_t panel, int64_t num_panels) {
  const Multiply multiply = choose_multiply(segment.bits);
  const int64_t tiles = num_tiles(count, segment.bits), end = num_panels * kPanelVectors;
  const int64_t width = min_of(tile_vectors(count, segment.bits), end);
  // All tiles together prefetch the next segment, line after line.
  const int64_t groups = tiles * (segment.length / task.weights.group_size);
  const int64_t lines = (segment.next_end - segment.next + kLineBytes - 1) / kLineBytes;
  const int64_t step = (lines + groups - 1) / groups * kLineBytes;
  for (int64_t vector = 0; vector < end; vector += width) {
    GroupTile tile = make_tile(task, segment, row, panel, vector);
    tile.next = segment.next;
    tile.next_end = segment.next_end;
    tile.next_step = step;
    const int64_t panel_end = (vector / kPanelVectors + 1) * segment.panel_bytes;
    tile.prefetch_bytes = prefetch_distance(task);
    tile.skip_from = segment.panels + panel_end - tile.prefetch_bytes;
    tile.skip_bytes = (max_of(width / kPanelVectors, 1) - 1) * segment.panel_bytes;
    if (task.next_panels != nullptr && panel + num_panels == task.last_panel &&
        vector + width >= end) {
      tile.skip_bytes = static_cast<const char*>(task.next_panels) - (segment.panels + panel_end);
    }
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t tile_rows = count / tiles + (i < count % tiles ? 1 : 0);
      multiply(tile_rows, width, tile);
      tile.codes += tile_rows * tile.input_stride;
      tile.scales += tile_rows * tile.input_stride;
      tile.out += tile_rows * tile.out_stride;
      tile.next += min_of(step * tile.num_groups, tile.next_end - tile.next);
    }
  }
}

Segment stored_segment(const GroupTask& task, int64_t panel, int64_t first_k) {
  const GroupPanels& weights = task.weights;
  const char* const first = static_cast<const char*>(weights.panels);
  const char* const head = first + panel * weights.panel_bytes;
  const int64_t length = min_of(first_k + kSegmentLength, weights.k) - first_k;
  const RecordLayout layout(weights);
  const char* const records =
      head + kPanelHeadBytes + layout.bytes_of(first_k / weights.group_size);
  const int64_t bytes = layout.bytes_of(length / weights.group_size);
  const char* const end = first + task.last_panel * weights.panel_bytes;
  return {.first_k = first_k,
          .length = length,
          .panels = head,
          .records = records,
          .layout = layout,
          .panel_bytes = weights.panel_bytes,
          .bits = weights.bits,
          .next = records + bytes,
          .next_end = records + min_of(2 * bytes, end - records)};
}

// The codes of one group, one to a byte.
template <int kBits>
void widen_codes(const char* codes, int64_t group_size, char* to) {
  for (int64_t i = 0; i < kStepBytes; i += int64_t{sizeof(Uints)}) {
    for_each_codes<kBits>(codes + i, group_size, [&](int64_t k, Uints bytes) {
      __builtin_memcpy(to + k * kPanelWidth + i, &bytes, sizeof(bytes));
    });
  }
}

// Not memcpy, which GCC turns into a string instruction: 30 cycles for 64 bytes.
PL_INLINE void copy_bytes(const char* from, int64_t count, char* to) {
  for (int64_t i = 0; i < count; i += int64_t{sizeof(Uints)}) {
    const Uints bytes = load_bits(from + i);
    __builtin_memcpy(to + i, &bytes, sizeof(bytes));
  }
}

// A segment of one panel with its codes widened to 8 bits, in scratch.
Segment widen_segment(const GroupTask& task, const Segment& stored) {
  const GroupPanels& weights = task.weights;
  const RecordLayout& layout = stored.layout;
  Segment wide = stored;
  wide.bits = 8;
  wide.records = static_cast<const char*>(task.scratch);
  wide.layout = RecordLayout(weights, wide.bits);
  GroupCursor from(layout, stored.records);
  const int64_t distance = prefetch_distance(task);
  auto* to = static_cast<char*>(task.scratch);
  with_code_bits(weights.bits, [&]<int kBits>() {
    for (int64_t g = 0; g < stored.length / weights.group_size; ++g) {
      for (int64_t line = 0; line < layout.code_bytes; line += kLineBytes) {
        __builtin_prefetch(from.codes + distance + line);
      }
      if (from.left == layout.groups_per_factor) {
        copy_bytes(from.scales, layout.head_bytes(), to);
        to += layout.head_bytes();
      }
      widen_codes<kBits>(from.codes, weights.group_size, to);
      to += wide.layout.code_bytes;
      from.advance(layout);
    }
  });
  return wide;
}

// Whether tiles read the stored panels, without widening.
bool reads_stored(const GroupTask& task) {
  if (task.weights.bits == 8) return true;
  if (task.weights.bits != 4) return task.num_rows < kOddWideningRows;
  if (!std::is_same_v<IntProduct<4>, IntProduct<8>>) return true;  // inputs would not fit
  return task.unpacks_freely || task.num_rows < kWideningRows;
}

}  // namespace

// Few rows use tiles as wide as registers allow, over panels that stream side by side. With many
// rows, one segment of one panel stays in the first-level cache while a whole block of rows is
// multiplied by it.
void matmul_groups(const GroupTask& task) {
  const bool is_stored = reads_stored(task);
  int64_t most_panels = 1;
  if (is_stored) {
    most_panels = panels_at_once(task.num_rows, task.weights.bits);
    if (task.num_rows <= kMaxStreamingRows) most_panels = min_of(most_panels, task.streams.panels);
  }
  const int64_t input_bytes =
      input_code_bytes(task.weights, min_of(kSegmentLength, task.weights.k));
  const int64_t block_rows = max_of(kBlockInputBytes / input_bytes, kMaxGroupRows);
  for (int64_t panel = task.first_panel; panel < task.last_panel;) {
    int64_t panels = most_panels;
    while (panels > task.last_panel - panel) panels /= 2;
    for (int64_t k = 0; k < task.weights.k; k += kSegmentLength) {
      Segment segment = stored_segment(task, panel, k);
      if (!is_stored) segment = widen_segment(task, segment);
      for (int64_t row = 0; row < task.num_rows; row += block_rows) {
        multiply_segment(task, segment, row, min_of(block_rows, task.num_rows - row), panel,
                         panels);
      }
    }
    panel += panels;
  }
}

namespace {

constexpr int kRunSums = kGroupSums * 2;
constexpr int kRunElements = 32;

// For the roofline: codes of 4 bits in registers.
template <class Product>
float run_int8(int64_t iterations, float seed) {
  static_assert(Product::kWordElements == 0 || Product::kWordElements == kRunElements);
  Uints bits = splat_bits(static_cast<uint32_t>(seed * 1e6f) & 0x0F0F0F0Fu);
  char inputs[Product::kInputBytes];
  __builtin_memset(inputs, 1, sizeof(inputs));
  const auto x = Product::input(inputs);
  Ints sums[kRunSums];
  for (int s = 0; s < kRunSums; ++s) sums[s] = (Ints)splat_bits(static_cast<uint32_t>(s));
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 24
    for (int s = 0; s < kRunSums; ++s) {
      Ints part = Product::kWordElements > 0 ? Ints{} : sums[s];
#pragma GCC unroll 8
      for (int step = 0; step < kRunElements / 4; ++step) {
        hide(bits);
        part = Product::add(part, Product::split(bits), x);
      }
      if constexpr (Product::kWordElements > 0) part = Product::end(part, sums[s]);
      sums[s] = part;
    }
  }
  Ints total = sums[0];
  for (int s = 1; s < kRunSums; ++s) total = total ^ sums[s];
  return reduce_add(__builtin_convertvector(total, Vec));
}

}  // namespace

void add_group_matmul_kernels(KernelTable& table) {
  table.matmul_groups = matmul_groups;
  table.group_stream_panels = [](const GroupPanels& weights, int64_t num_rows) {
    if (num_rows > kMaxStreamingRows) return int64_t{0};
    return panels_at_once(num_rows, weights.bits);
  };
  table.group_scratch_bytes = [](const GroupPanels&) { return kScratchBytes; };
  table.run_int8 = run_int8<IntProduct<4>>;
  table.run_int8_ops = int64_t{2} * kRunElements * kLanes * kRunSums;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
