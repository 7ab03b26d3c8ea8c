// Products with packed matrices: one tile kernel for any number of rows, so that a row's bits don't
// depend on the other rows.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/tile_sums.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int kPanelVectors = static_cast<int>(kPanelWidth) / kLanes;
constexpr int kMaxTileVectors = kAccumulators >= 16 ? 16 : 8;
constexpr int kMinTileVectors = 2;
constexpr int kPrefetchLine = 64;
// Products of more rows find weights in the caches.
constexpr int64_t kMostStreamedRows = 8;
// The second-level cache holds a block of rows' inputs to one segment, and the weights of a few
// panels in it.
constexpr int64_t kBlockInputBytes = 512 * 1024;
constexpr int64_t kGroupPanels = 4;
constexpr int kMaxTileRows = kAccumulators / kMinTileVectors;

// A tile of sums over one segment of K.
template <class Product>
struct Tile {
  const typename Product::Input* inputs;  // the tile's first row at the segment's start
  int64_t input_stride;                   // elements
  const typename Product::Weight* weights;
  int64_t panel_elements;
  int64_t num_steps;
  TileOutputs to;
  bool continues;  // the outputs that are there
  int64_t prefetch_bytes;
};

template <class Product, int kRows, int kVectors>
PL_INLINE void load_tile_sums(const Tile<Product>& tile, Vec (&sums)[kRows][kVectors]) {
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * kLanes;
    const int64_t count = min_of(tile.to.num_columns - column, kLanes);
    if (count <= 0) return;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      sums[r][v] = load_upto(tile.to.out + r * tile.to.out_stride + column, count);
    }
  }
}

// sums[r][v] = 0 or the output, then one multiply-add per factor and step, in ascending order.
template <class Product, int kRows, int kVectors>
void multiply_tile(const Tile<Product>& tile) {
  constexpr int64_t kStepWeights = kPanelWidth * Product::kDepth;
  constexpr int kVectorBytes =
      kLanes * Product::kDepth * static_cast<int>(sizeof(typename Product::Weight));
  const typename Product::Input* inputs = tile.inputs;
  const typename Product::Weight* weights = tile.weights;
  const int64_t input_stride = tile.input_stride;
  const int64_t panel_elements = tile.panel_elements;
  const int64_t distance = tile.prefetch_bytes;
  Vec sums[kRows][kVectors] = {};
  if (tile.continues) load_tile_sums<Product, kRows, kVectors>(tile, sums);
  for (int64_t step = 0; step < tile.num_steps; ++step) {
    typename Product::Raw raw[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const auto* const from = weights + v / kPanelVectors * panel_elements +
                               v % kPanelVectors * kLanes * Product::kDepth;
      raw[v] = Product::load_weights(from);
      if (v * kVectorBytes % kPrefetchLine == 0) {
        __builtin_prefetch(reinterpret_cast<const char*>(from) + distance);
      }
    }
    const auto add_factor = [&]<int kFactor>() __attribute__((always_inline)) {
      typename Product::Factor factors[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) factors[v] = Product::template weights<kFactor>(raw[v]);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const auto x = Product::template input<kFactor>(inputs + r * input_stride);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = Product::multiply_add(sums[r][v], x, factors[v]);
        }
      }
    };
    add_factor.template operator()<0>();
    if constexpr (Product::kFactors == 2) add_factor.template operator()<1>();
    weights += kStepWeights;
    inputs += Product::kInputsPerStep;
  }
  store_sums(tile.to, sums);
}

template <class Product, int kVectors, int kRows = kAccumulators / kVectors>
void multiply_rows(int64_t num_rows, const Tile<Product>& tile) {
  if constexpr (kRows > 0) {
    if (num_rows == kRows) {
      multiply_tile<Product, kRows, kVectors>(tile);
    } else {
      multiply_rows<Product, kVectors, kRows - 1>(num_rows, tile);
    }
  }
}

int64_t num_tiles(int64_t num_rows) { return (num_rows + kMaxTileRows - 1) / kMaxTileRows; }

// The width of the widest tiles of `num_rows` rows whose sums stay in registers.
int64_t widest_tile(int64_t num_rows) {
  const int64_t tile_rows = (num_rows + num_tiles(num_rows) - 1) / num_tiles(num_rows);
  int64_t vectors = kMaxTileVectors;
  while (vectors > kMinTileVectors && vectors * tile_rows > kAccumulators) vectors /= 2;
  return vectors;
}

int64_t stream_panels(int64_t num_rows) {
  if (num_rows > kMostStreamedRows) return 0;
  return max_of(widest_tile(num_rows) / kPanelVectors, 1);
}

int64_t tile_vectors(const MatmulTask& task, int64_t num_rows) {
  const int64_t widest = widest_tile(num_rows);
  if (task.num_rows > kMostStreamedRows) return widest;
  return min_of(widest, task.streams.panels * kPanelVectors);
}

template <class Product>
void multiply(int64_t num_rows, int64_t num_vectors, const Tile<Product>& tile) {
  switch (num_vectors) {
    case 16:
      return multiply_rows<Product, 16>(num_rows, tile);
    case 8:
      return multiply_rows<Product, 8>(num_rows, tile);
    case 4:
      return multiply_rows<Product, 4>(num_rows, tile);
    default:
      return multiply_rows<Product, 2>(num_rows, tile);
  }
}

// Cuts a tile that is too tall into tiles of nearly equal height.
template <class Product>
void multiply_columns(int64_t num_rows, int64_t num_vectors, Tile<Product> tile) {
  const int64_t tiles = num_tiles(num_rows);
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t tile_rows = num_rows / tiles + (i < num_rows % tiles ? 1 : 0);
    multiply<Product>(tile_rows, num_vectors, tile);
    tile.inputs += tile_rows * tile.input_stride;
    tile.to.out += tile_rows * tile.to.out_stride;
  }
}

// Rows [first, last), vectors of columns [first, last).
struct Range {
  int64_t first;
  int64_t last;
};

// A block of rows times a group of panels, of the segment that begins at first_k.
template <class Product>
void multiply_block(const MatmulTask& task, int64_t first_k, Range rows, Range vectors) {
  constexpr auto kInputBytes = static_cast<int64_t>(sizeof(typename Product::Input));
  const auto* const weights = static_cast<const typename Product::Weight*>(task.panels);
  const int64_t last_k = min_of(first_k + task.segment_length, task.padded_k);
  const bool has_bias = last_k == task.padded_k && task.bias != nullptr;
  const bool continues = task.outputs == Outputs::continued;
  const int64_t num_rows = rows.last - rows.first;
  const int64_t input_stride = task.input_stride / kInputBytes;
  const auto* const inputs = static_cast<const typename Product::Input*>(task.inputs) +
                             rows.first * input_stride +
                             first_k / Product::kDepth * Product::kInputsPerStep;
  const int64_t most_vectors = tile_vectors(task, num_rows);
  for (int64_t vector = vectors.first; vector < vectors.last;) {
    int64_t num_vectors = most_vectors;
    while (num_vectors > vectors.last - vector) num_vectors /= 2;
    const int64_t column = vector * kLanes;
    multiply_columns<Product>(
        num_rows, num_vectors,
        {.inputs = inputs,
         .input_stride = input_stride,
         .weights = weights + vector / kPanelVectors * task.panel_elements + first_k * kPanelWidth +
                    vector % kPanelVectors * kLanes * Product::kDepth,
         .panel_elements = task.panel_elements,
         .num_steps = (last_k - first_k) / Product::kDepth,
         .to = {.out = task.out + rows.first * task.out_stride + column,
                .out_stride = task.out_stride,
                .num_columns = task.n - column,
                .bias = has_bias ? task.bias + column : nullptr,
                .adds = task.outputs == Outputs::added_to || (first_k > 0 && !continues)},
         .continues = continues,
         .prefetch_bytes = task.streams.prefetch_bytes});
    vector += num_vectors;
  }
}

// Any order of the loops adds an element's segments in ascending order.
template <class Product>
void matmul(const MatmulTask& task) {
  constexpr auto kInputBytes = static_cast<int64_t>(sizeof(typename Product::Input));
  constexpr int64_t kSegmentBytes =
      kSegmentLength / Product::kDepth * Product::kInputsPerStep * kInputBytes;
  constexpr int64_t kBlockRows = kBlockInputBytes / kSegmentBytes;
  const int64_t tile = tile_vectors(task, task.num_rows);
  // Few rows stream their panels through all segments.
  const int64_t group = task.num_rows <= kMostStreamedRows
                            ? max_of(tile, kPanelVectors)
                            : max_of(kGroupPanels * kPanelVectors, tile);
  const int64_t end = task.last_panel * kPanelVectors;
  for (int64_t vector = task.first_panel * kPanelVectors; vector < end; vector += group) {
    const Range vectors = {vector, min_of(vector + group, end)};
    for (int64_t k = 0; k < task.padded_k; k += task.segment_length) {
      for (int64_t row = 0; row < task.num_rows; row += kBlockRows) {
        multiply_block<Product>(task, k, {row, min_of(row + kBlockRows, task.num_rows)}, vectors);
      }
    }
  }
}

// Copies float32, with zeros up to padded_k.
void copy_row(const float* x, int64_t k, int64_t padded_k, void* input) {
  auto* const to = static_cast<float*>(input);
  for_each_vector(
      k, [&](int64_t i, int64_t count) { store_upto(to + i, load_upto(x + i, count), count); });
  for (int64_t i = k; i < padded_k; ++i) to[i] = 0.0f;
}

// Rounds to bfloat16, in the element type of this instruction set's product.
void round_row(const float* x, int64_t k, int64_t padded_k, void* input) {
  if constexpr (Bf16Product::kFactors == 1) {
    auto* const to = static_cast<Bf16*>(input);
    for_each_vector(
        k, [&](int64_t i, int64_t count) { store_upto(to + i, load_upto(x + i, count), count); });
    for (int64_t i = k; i < padded_k; ++i) to[i] = {0};
  } else {
    auto* const to = static_cast<float*>(input);
    for_each_vector(k, [&](int64_t i, int64_t count) {
      const Uints rounded = round_bits_to_bf16(load_upto(x + i, count)) << 16;
      store_upto(to + i, as_floats(rounded), count);
    });
    for (int64_t i = k; i < padded_k; ++i) to[i] = 0.0f;
  }
}

}  // namespace

void add_matmul_kernels(KernelTable& table) {
  table.matmul[0] = matmul<F32Product>;
  table.matmul[1] = matmul<F16Product>;
  table.matmul[2] = matmul<Bf16Product>;
  for (auto& panels : table.stream_panels) panels = stream_panels;
  table.prepare_row[0] = copy_row;
  table.prepare_row[1] = copy_row;
  table.prepare_row[2] = round_row;
  table.input_bytes[0] = sizeof(float);
  table.input_bytes[1] = sizeof(float);
  table.input_bytes[2] = Bf16Product::kFactors == 1 ? sizeof(Bf16) : sizeof(float);
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
