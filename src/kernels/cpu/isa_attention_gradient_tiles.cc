// The gradients of attention with operands in bfloat16, where the instruction set has tile
// registers. Scores of a tile are computed as keys by rows for both kinds of pieces. A query is the
// sum of two bfloat16 in them, so that weights are those of the forward pass.
#include "kernels/cpu/isa_kernels.h"

#if defined(PACELINE_ISA_AMX)

#include "kernels/cpu/row_sum.h"
#include "kernels/cpu/score_gradient.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/tile_halves.h"
#include "kernels/cpu/tile_registers.h"
#include "kernels/cpu/transpose.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int64_t kSide = kGradientTile;

// Zeros follow the elements of a head up to this width.
PL_INLINE int64_t packed_width(const AttentionGradientTask& task) {
  return round_up(task.head_dim, kStepDepth);
}

// The operands of a tile of keys.
struct PackedKeys {
  Bf16* keys;     // [kSide][width]
  Bf16* values;   // [kSide][width]
  Bf16* columns;  // of keys, [width][kSide]
};

// The operands of a head's rows of a tile. Pairs lie beside each other, as products take them.
struct PackedRows {
  Bf16* queries;       // [2: rounded and what is left][width / 2][kSide][2]
  Bf16* outputs;       // [width / 2][kSide][2]
  Bf16* query_pairs;   // [kSide / 2][width][2]
  Bf16* output_pairs;  // [kSide / 2][width][2]
  float* log_sums;     // [kSide]
  float* means;        // [kSide]
};

PL_INLINE int64_t elements_of_keys(const AttentionGradientTask& task) {
  return 3 * kSide * packed_width(task);
}
PL_INLINE int64_t elements_of_rows(const AttentionGradientTask& task) {
  constexpr int64_t kNumbers = 2 * kSide * static_cast<int64_t>(sizeof(float) / sizeof(Bf16));
  return 5 * kSide * packed_width(task) + kNumbers;
}
PL_INLINE Bf16* packed_tile(const AttentionGradientTask& task, int64_t tile) {
  return static_cast<Bf16*>(task.packed) +
         tile * (elements_of_keys(task) + task.group * elements_of_rows(task));
}

int64_t packed_bytes(const AttentionGradientTask& task) {
  const int64_t tiles = round_up(task.num_rows, kSide) / kSide;
  return (packed_tile(task, tiles) - packed_tile(task, 0)) * static_cast<int64_t>(sizeof(Bf16));
}

PL_INLINE PackedKeys packed_keys(const AttentionGradientTask& task, int64_t tile) {
  const int64_t part = kSide * packed_width(task);
  Bf16* const first = packed_tile(task, tile);
  return {first, first + part, first + 2 * part};
}

PL_INLINE PackedRows packed_rows(const AttentionGradientTask& task, int64_t head, int64_t tile) {
  const int64_t part = kSide * packed_width(task);
  Bf16* const first =
      packed_tile(task, tile) + elements_of_keys(task) + head * elements_of_rows(task);
  auto* const numbers = reinterpret_cast<float*>(first + 5 * part);
  return {first, first + 2 * part, first + 3 * part, first + 4 * part, numbers, numbers + kSide};
}

// Pairs of lanes.
PL_INLINE void store_pairs(Bf16* to, Vec even, Vec odd) {
  const Halves halves = round_halves(even, odd);
  store_halves(to, __builtin_shufflevector(halves, halves, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                           6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                           29, 14, 30, 15, 31));
}

// Some rows of a head; those behind them, and elements behind the head's, are zeros.
struct TileRows {
  const float* first;
  int64_t stride;  // elements
  int64_t count;
  int64_t width;

  __attribute__((always_inline)) Vec lanes(int64_t row, int64_t column) const {
    if (row >= count || column >= width) return Vec{};
    return load_upto(first + row * stride + column, min_of(width - column, kLanes));
  }
};

PL_INLINE TileRows tile_rows_of(const AttentionGradientTask& task, const GradientRows& rows,
                                int64_t head, int64_t tile) {
  return {rows.first + tile * kSide * rows.row_stride + head * rows.head_stride, rows.row_stride,
          tile_rows(task, tile), task.head_dim};
}

// Calls body(column, row, square) for the squares of the transpose of a tile: square[i] are lanes
// of rows of column + i.
template <class Body>
PL_INLINE void for_each_square(const TileRows& rows, int64_t padded_width, Body&& body) {
  for (int64_t column = 0; column < padded_width; column += kLanes) {
    for (int64_t row = 0; row < kSide; row += kLanes) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) square[i] = rows.lanes(row + i, column);
      transpose_square(square);
      body(column, row, square);
    }
  }
}

void pack_row_by_row(const TileRows& rows, int64_t padded_width, Bf16* to) {
  for (int64_t row = 0; row < kSide; ++row) {
    for (int64_t column = 0; column < padded_width; column += 2 * kLanes) {
      store_halves(to + row * padded_width + column,
                   round_halves(rows.lanes(row, column), rows.lanes(row, column + kLanes)));
    }
  }
}

// to[column][row]
void pack_columns(const TileRows& rows, int64_t padded_width, Bf16* to) {
  for_each_square(rows, padded_width, [&](int64_t column, int64_t row, const Vec* square) {
    for (int64_t i = 0; i < kLanes; ++i) store(to + (column + i) * kSide + row, square[i]);
  });
}

// to[column / 2][row] are pairs of columns; `rest` gets what rounding took, where there is a rest.
void pack_column_pairs(const TileRows& rows, int64_t padded_width, Bf16* to, Bf16* rest) {
  for_each_square(rows, padded_width, [&](int64_t column, int64_t row, const Vec* square) {
    for (int64_t i = 0; i < kLanes; i += 2) {
      const int64_t at = (column + i) * kSide + 2 * row;
      store_pairs(to + at, square[i], square[i + 1]);
      if (rest == nullptr) continue;
      const Vec even = square[i] - as_floats(round_bits_to_bf16(square[i]) << 16);
      const Vec odd = square[i + 1] - as_floats(round_bits_to_bf16(square[i + 1]) << 16);
      store_pairs(rest + at, even, odd);
    }
  });
}

// to[row / 2][column] are pairs of rows.
void pack_row_pairs(const TileRows& rows, int64_t padded_width, Bf16* to) {
  for (int64_t row = 0; row < kSide; row += 2) {
    for (int64_t column = 0; column < padded_width; column += kLanes) {
      store_pairs(to + row * padded_width + 2 * column, rows.lanes(row, column),
                  rows.lanes(row + 1, column));
    }
  }
}

void pack_key_tile(const AttentionGradientTask& task, int64_t tile) {
  const int64_t width = packed_width(task);
  const TileRows keys = tile_rows_of(task, task.k, 0, tile);
  const PackedKeys to = packed_keys(task, tile);
  pack_row_by_row(keys, width, to.keys);
  pack_columns(keys, width, to.columns);
  pack_row_by_row(tile_rows_of(task, task.v, 0, tile), width, to.values);
}

void pack_row_tile(const AttentionGradientTask& task, int64_t head, int64_t tile) {
  const int64_t width = packed_width(task), count = tile_rows(task, tile);
  const TileRows queries = tile_rows_of(task, task.q, head, tile);
  const TileRows outputs = tile_rows_of(task, task.dout, head, tile);
  const PackedRows to = packed_rows(task, head, tile);
  pack_column_pairs(queries, width, to.queries, to.queries + kSide * width);
  pack_column_pairs(outputs, width, to.outputs, nullptr);
  pack_row_pairs(queries, width, to.query_pairs);
  pack_row_pairs(outputs, width, to.output_pairs);
  for (int64_t i = 0; i < kSide; ++i) {
    const int64_t row = tile * kSide + i;
    to.log_sums[i] = i < count ? task.log_sum_exp[row * task.log_sum_exp_stride + head] : 0.0f;
    to.means[i] = i < count ? task.means[row * task.means_stride + head] : 0.0f;
  }
}

// out[m][n] (+)= sum over K of a[m][k] b[k][n], where b has pairs of K side by side. b may be
// the sum of several parts, which follow each other in memory: each has `depth` rows and is
// multiplied by the same a.
struct PairProduct {
  const Bf16* a;
  int64_t a_stride;
  const Bf16* b;
  int64_t b_stride;  // from a pair of K to the next
  int64_t depth;
  float* out;
  int64_t out_stride;
  int64_t parts = 1;
};

// With the rounded gradients of outputs, as gradients of scores have them: rounding then takes
// nothing from the difference of the two.
float rounded_output_mean(const float* dout, const float* out, int64_t head_dim) {
  return sum_of(head_dim, [&](int64_t i, int64_t count) {
    const Uints rounded = round_bits_to_bf16(load_upto(dout + i, count)) << 16;
    return as_floats(rounded) * load_upto(out + i, count);
  });
}

// 32 rows by 32 columns.
template <Start kStart>
PL_INLINE void multiply_quad(const PairProduct& product) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  constexpr auto kHalf = static_cast<int64_t>(sizeof(Bf16));
  const int64_t out_bytes = product.out_stride * kFloat;
  float* const lower = product.out + kTileRows * product.out_stride;
  if constexpr (kStart == Start::zero) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, product.out, out_bytes);
    _tile_loadd(1, product.out + kTileColumns, out_bytes);
    _tile_loadd(2, lower, out_bytes);
    _tile_loadd(3, lower + kTileColumns, out_bytes);
  }
  const Bf16* b = product.b;
  for (int64_t part = 0; part < product.parts; ++part) {
    const Bf16* a = product.a;
    for (int64_t k = 0; k < product.depth; k += kStepDepth) {
      _tile_loadd(6, b, product.b_stride * kHalf);
      _tile_loadd(4, a, product.a_stride * kHalf);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, a + kTileRows * product.a_stride, product.a_stride * kHalf);
      _tile_dpbf16ps(2, 5, 6);
      _tile_loadd(7, b + 2 * kTileColumns, product.b_stride * kHalf);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
      a += kStepDepth;
      b += kStepDepth / 2 * product.b_stride;
    }
  }
  _tile_stored(0, product.out, out_bytes);
  _tile_stored(1, product.out + kTileColumns, out_bytes);
  _tile_stored(2, lower, out_bytes);
  _tile_stored(3, lower + kTileColumns, out_bytes);
}

// Rows and columns are multiples of 32.
template <Start kStart>
void multiply_quads(const PairProduct& product, int64_t num_rows, int64_t num_columns) {
  constexpr int64_t kQuad = 2 * kTileRows;
  finish_stores();
  for (int64_t column = 0; column < num_columns; column += kQuad) {
    for (int64_t row = 0; row < num_rows; row += kQuad) {
      PairProduct quad = product;
      quad.a += row * product.a_stride;
      quad.b += 2 * column;
      quad.out += row * product.out_stride + column;
      multiply_quad<kStart>(quad);
    }
  }
}

void use_whole_tiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.set(tile, kTileRows);
  config.use();
}

// One thread's buffers.
struct TileScratch {
  float* scores;           // [kSide keys][kSide rows]
  float* value_gradients;  // [kSide keys][kSide rows]
  Bf16* weights;           // [kSide keys][kSide rows]
  Bf16* gradients;         // [kSide keys][kSide rows]
  Bf16* gradient_pairs;    // [kSide / 2 keys][kSide rows][2]
  float* query_sums;       // [width][kSide rows]
  float* sums;             // [kSide keys][width], or those of all tiles of keys
  float* value_sums;       // beside each sums

  explicit TileScratch(const AttentionGradientTask& task) {
    constexpr int64_t kTileFloats = kSide * kSide;
    scores = static_cast<float*>(task.scratch);
    value_gradients = scores + kTileFloats;
    weights = reinterpret_cast<Bf16*>(value_gradients + kTileFloats);
    gradients = weights + kTileFloats;
    gradient_pairs = gradients + kTileFloats;
    query_sums = reinterpret_cast<float*>(gradient_pairs + kTileFloats);
    sums = query_sums + kSide * packed_width(task);
    value_sums = sums + kSide * packed_width(task);
  }

  // With the sums of another tile of keys.
  __attribute__((always_inline)) static TileScratch of_keys(const TileScratch& first, int64_t width,
                                                            int64_t tile) {
    TileScratch moved = first;
    moved.sums += tile * 2 * kSide * width;
    moved.value_sums += tile * 2 * kSide * width;
    return moved;
  }
};

int64_t tile_scratch_floats(int64_t head_dim, int64_t key_tiles) {
  const int64_t width = round_up(head_dim, kStepDepth);
  return 2 * kSide * kSide + 3 * kSide * kSide / 2 + kSide * width + key_tiles * 2 * kSide * width;
}

PL_INLINE bool all_see_all(const AttentionGradientTask& task, int64_t row_tile, int64_t key_tile) {
  const int64_t farthest = (row_tile - key_tile + 1) * kSide - 1;
  return key_tile < row_tile && (task.window == 0 || farthest < task.window);
}

// Two keys by twice as many rows as a vector has lanes.
struct ScoreGradientBlock {
  ScoreGradient of[2][2];  // [key][rows]
};

// Calls body(key, row, block) for the blocks of a tile. Rows behind the sequence's last one have
// zeros as operands: what they give adds nothing.
template <class Body>
PL_INLINE void differentiate_tile(const AttentionGradientTask& task, const TileScratch& scratch,
                                  const PackedRows& rows, int64_t row_tile, int64_t key_tile,
                                  Body&& body) {
  const bool is_masked = !all_see_all(task, row_tile, key_tile);
  for (int64_t row = 0; row < kSide; row += 2 * kLanes) {
    Vec log_sums[2], means[2];
    for (int64_t i = 0; i < 2; ++i) {
      log_sums[i] = load(rows.log_sums + row + i * kLanes);
      means[i] = load(rows.means + row + i * kLanes);
    }
    for (int64_t key = 0; key < kSide; key += 2) {
      ScoreGradientBlock block;
#pragma GCC unroll 2
      for (int64_t k = 0; k < 2; ++k) {
        const LaneRange lanes = rows_that_see(task, key_tile * kSide + key + k, row_tile * kSide);
#pragma GCC unroll 2
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t lane = row + i * kLanes, at = (key + k) * kSide + lane;
          ScoreGradient& result = block.of[k][i];
          result = score_gradient(task, load(scratch.scores + at),
                                  load(scratch.value_gradients + at), log_sums[i], means[i]);
          if (!is_masked) continue;
          result.weight = keep_lanes(result.weight, lanes, lane);
          result.gradient = keep_lanes(result.gradient, lanes, lane);
        }
      }
      body(key, row, block);
    }
  }
}

// scores = K Q^T, value_gradients = V dO^T
void multiply_scores(const AttentionGradientTask& task, const TileScratch& scratch,
                     const PackedKeys& keys, const PackedRows& rows) {
  const int64_t width = packed_width(task);
  multiply_quads<Start::zero>({.a = keys.keys,
                               .a_stride = width,
                               .b = rows.queries,
                               .b_stride = 2 * kSide,
                               .depth = width,
                               .out = scratch.scores,
                               .out_stride = kSide,
                               .parts = 2},
                              kSide, kSide);
  multiply_quads<Start::zero>({.a = keys.values,
                               .a_stride = width,
                               .b = rows.outputs,
                               .b_stride = 2 * kSide,
                               .depth = width,
                               .out = scratch.value_gradients,
                               .out_stride = kSide},
                              kSide, kSide);
}

// Which gradients a tile of scores adds to.
enum class Adds : uint8_t { to_keys, to_queries, to_both };

// The weights of a tile, and the gradients of its scores, as operands of what they add to.
template <Adds kAdds>
void differentiate(const AttentionGradientTask& task, const TileScratch& scratch,
                   const PackedRows& rows, int64_t row_tile, int64_t key_tile) {
  differentiate_tile(
      task, scratch, rows, row_tile, key_tile,
      [&](int64_t key, int64_t row, const ScoreGradientBlock& block) {
#pragma GCC unroll 2
        for (int64_t i = 0; i < 2; ++i) {
          if constexpr (kAdds != Adds::to_queries) {
            const auto& [low, high] = block.of[i];
            const int64_t at = (key + i) * kSide + row;
            store_halves(scratch.weights + at, round_halves(low.weight, high.weight));
            store_halves(scratch.gradients + at, round_halves(low.gradient, high.gradient));
          }
          if constexpr (kAdds != Adds::to_keys) {
            store_pairs(scratch.gradient_pairs + key * kSide + 2 * (row + i * kLanes),
                        block.of[0][i].gradient, block.of[1][i].gradient);
          }
        }
      });
}

void add_to_keys(const AttentionGradientTask& task, const TileScratch& scratch,
                 const PackedRows& rows) {
  const int64_t width = packed_width(task);
  const auto add = [&](const Bf16* factors, const Bf16* pairs, float* sums) {
    multiply_quads<Start::out>({.a = factors,
                                .a_stride = kSide,
                                .b = pairs,
                                .b_stride = 2 * width,
                                .depth = kSide,
                                .out = sums,
                                .out_stride = width},
                               kSide, width);
  };
  add(scratch.gradients, rows.query_pairs, scratch.sums);
  add(scratch.weights, rows.output_pairs, scratch.value_sums);
}

// The sums are transposed: dQ^T += K^T dS^T.
void add_to_queries(const AttentionGradientTask& task, const TileScratch& scratch,
                    const PackedKeys& keys) {
  multiply_quads<Start::out>({.a = keys.columns,
                              .a_stride = kSide,
                              .b = scratch.gradient_pairs,
                              .b_stride = 2 * kSide,
                              .depth = kSide,
                              .out = scratch.query_sums,
                              .out_stride = kSide},
                             packed_width(task), kSide);
}

// Adds what the scores of a head's rows of a tile and a tile of keys contribute.
template <Adds kAdds>
void add_tile(const AttentionGradientTask& task, const TileScratch& scratch, int64_t head,
              int64_t row_tile, int64_t key_tile) {
  const PackedRows rows = packed_rows(task, head, row_tile);
  const PackedKeys keys = packed_keys(task, key_tile);
  multiply_scores(task, scratch, keys, rows);
  differentiate<kAdds>(task, scratch, rows, row_tile, key_tile);
  if constexpr (kAdds != Adds::to_queries) add_to_keys(task, scratch, rows);
  if constexpr (kAdds != Adds::to_keys) add_to_queries(task, scratch, keys);
}

void clear(float* sums, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) store(sums + i, Vec{});
}

void write_key_sums(const AttentionGradientTask& task, const TileScratch& scratch,
                    int64_t key_tile) {
  const int64_t width = packed_width(task), first = key_tile * kSide;
  for (int64_t key = 0; key < tile_rows(task, key_tile); ++key) {
    float* const dk = task.dk + (first + key) * task.dk_stride;
    float* const dv = task.dv + (first + key) * task.dv_stride;
    for_each_vector(task.head_dim, [&](int64_t i, int64_t count) {
      store_upto(dk + i, load(scratch.sums + key * width + i), count);
      store_upto(dv + i, load(scratch.value_sums + key * width + i), count);
    });
  }
}

void write_query_sums(const AttentionGradientTask& task, const TileScratch& scratch, int64_t head,
                      int64_t row_tile) {
  float* const dq = task.dq + row_tile * kSide * task.dq_row_stride + head * task.dq_head_stride;
  const TileRows columns = {scratch.query_sums, kSide, task.head_dim, kSide};
  const int64_t num_rows = tile_rows(task, row_tile);
  for (int64_t column = 0; column < task.head_dim; column += kLanes) {
    const int64_t count = min_of(kLanes, task.head_dim - column);
    for (int64_t row = 0; row < num_rows; row += kLanes) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) square[i] = columns.lanes(column + i, row);
      transpose_square(square);
      for (int64_t i = 0; i < min_of(kLanes, num_rows - row); ++i) {
        store_upto(dq + (row + i) * task.dq_row_stride + column, square[i], count);
      }
    }
  }
}

// Sums run in the order of the kernels in vector registers (isa_attention_gradient.cc).
void key_tile_gradients(const AttentionGradientTask& task, int64_t key_tile) {
  const TileScratch scratch(task);
  clear(scratch.sums, 2 * kSide * packed_width(task));
  use_whole_tiles();
  const int64_t end = end_of_rows(task, key_tile);
  for (int64_t tile = key_tile; tile * kSide < end; ++tile) {
    for (int64_t head = 0; head < task.group; ++head) {
      add_tile<Adds::to_keys>(task, scratch, head, tile, key_tile);
    }
  }
  _tile_release();
  write_key_sums(task, scratch, key_tile);
}

void query_tile_gradients(const AttentionGradientTask& task, int64_t head, int64_t row_tile) {
  const TileScratch scratch(task);
  clear(scratch.query_sums, kSide * packed_width(task));
  use_whole_tiles();
  for (int64_t tile = first_key_tile(task, row_tile); tile <= row_tile; ++tile) {
    add_tile<Adds::to_queries>(task, scratch, head, row_tile, tile);
  }
  _tile_release();
  write_query_sums(task, scratch, head, row_tile);
}

// Tiles of rows, in a tile the heads, and a head's tiles of keys ascend, so all sums have the order
// that they have above.
void all_tile_gradients(const AttentionGradientTask& task) {
  const TileScratch scratch(task);
  const int64_t width = packed_width(task), tiles = round_up(task.num_rows, kSide) / kSide;
  clear(scratch.sums, tiles * 2 * kSide * width);
  use_whole_tiles();
  for (int64_t row_tile = 0; row_tile < tiles; ++row_tile) {
    for (int64_t head = 0; head < task.group; ++head) {
      clear(scratch.query_sums, kSide * width);
      for (int64_t tile = first_key_tile(task, row_tile); tile <= row_tile; ++tile) {
        add_tile<Adds::to_both>(task, TileScratch::of_keys(scratch, width, tile), head, row_tile,
                                tile);
      }
      write_query_sums(task, scratch, head, row_tile);
    }
  }
  _tile_release();
  for (int64_t tile = 0; tile < tiles; ++tile) {
    write_key_sums(task, TileScratch::of_keys(scratch, width, tile), tile);
  }
}

}  // namespace

void add_attention_gradient_tile_kernels(KernelTable& table) {
  table.attention_gradients[1] = {.output_mean = rounded_output_mean,
                                  .scratch_floats = tile_scratch_floats,
                                  .packed_bytes = packed_bytes,
                                  .pack_keys = pack_key_tile,
                                  .pack_rows = pack_row_tile,
                                  .key_gradients = key_tile_gradients,
                                  .query_gradients = query_tile_gradients,
                                  .all_gradients = all_tile_gradients};
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#else

namespace paceline::PACELINE_ISA_NAMESPACE {

void add_attention_gradient_tile_kernels(KernelTable&) {}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#endif
