// Attention by matrix instructions, over stored bfloat16 or int8: tiles of 16 packed rows (rows
// times the heads of a kv head) for each warp, times chunks of 64 keys. Queries are rounded to
// bfloat16, as are the softmax's weights relative to the chunk's maximum. A chunk's products with
// values are four steps: step s takes keys 4 s to 4 s + 3 of each 16. Chunks are merged in
// ascending order as in attention.h, so that a row's bits depend on what it sees alone. A key that
// only other rows of a tile see has a weight of exactly 0. Where its value isn't finite, the row is
// multiplied again without it (multiply_alone). Zero times a finite value changes no bit of a sum
// unless the value is 2^100 times as large.
//
// Lane 4 g + t has rows g and g + 8 of the tile, keys 16 t to 16 t + 15 of a chunk, and dimensions
// 16 t to 16 t + 15 of each 64: what an instruction leaves to a lane is what the next one takes
// from it. Keys and values stand in shared memory as they are stored; a lane makes pairs of
// neighbouring rows (attention_fragments.h).
//
// A block of one warp decodes: a chunk of keys and values is 16 KB with heads of 64 (32 KB with
// 128), and a multiprocessor's shared memory holds 8 (5) such blocks with their queries, 128 KB in
// flight where 23 KB keep its share of an H200's memory busy. A block of four warps has 64 packed
// rows of a prompt, and copies the next keys while it multiplies the values. Not measured.
#pragma once

#include "kernels/cuda/code/attention_chunk.h"
#include "kernels/cuda/code/attention_fragments.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

constexpr int32_t kTileRows = 16;  // of a warp
constexpr auto kTiledKeys = static_cast<int32_t>(kChunkKeys);
constexpr int64_t kMostTiledHeadDim = 256;

// Values of more dimensions than two blocks of 64 are of two blocks of threads, along y of the
// grid, which both compute the weights: their sums would not fit registers.
template <int kBlocks>
inline constexpr int kValueParts = kBlocks > 2 ? 2 : 1;
template <int kBlocks>
inline constexpr int kValueBlocks = kBlocks > 2 ? 2 : kBlocks;

// kBlocks: 64 dimensions each.
template <class Stored, int kBlocks, int kWarps>
struct AttentionTileShared {
  StoredTile<Stored> keys[kBlocks];                  // rows are dimensions
  StoredTile<Stored> values[kValueBlocks<kBlocks>];  // rows are positions
  Words4 queries[kWarps][kBlocks * 4][kWarpLanes];
  Floats4 key_scales[kTileWidth / 4];
  Floats4 value_scales[kTileWidth / 4];
};

// What a block computes: packed rows of one kv head, and the positions that they see.
struct TiledRows {
  int32_t first_row;
  int32_t skipped;
  int32_t count;
  int32_t begin;  // visible position
  int32_t end;    // behind the last
  int32_t kv_head;
  const int32_t* table;

  PL_DEVICE int32_t row(const AttentionKernelParams& p, int32_t packed) const {
    return first_row + (skipped + packed) / static_cast<int32_t>(p.group);
  }
  PL_DEVICE int32_t head(const AttentionKernelParams& p, int32_t packed) const {
    const auto group = static_cast<int32_t>(p.group);
    return kv_head * group + (skipped + packed) % group;
  }
};

template <int kWarps>
PL_DEVICE TiledRows tiled_rows(const AttentionKernelParams& p, uint32_t kv_head) {
  constexpr int32_t kRows = kWarps * kTileRows;
  TiledRows rows;
  if (p.tiles != nullptr) {
    const AttentionTile& tile = p.tiles[block_index().x];
    rows = {static_cast<int32_t>(tile.first_row), tile.skipped, tile.count, 0, 0, 0, nullptr};
  } else {
    const auto group = static_cast<int32_t>(p.group), index = static_cast<int32_t>(block_index().x);
    const int32_t of_row = (group + kRows - 1) / kRows;
    rows = {index / of_row, index % of_row * kRows, 0, 0, 0, 0, nullptr};
    const int32_t left = group - rows.skipped;
    rows.count = left < kRows ? left : kRows;
  }
  const AttentionRow& first = p.rows[rows.first_row];
  rows.begin = static_cast<int32_t>(first.first);
  rows.end = static_cast<int32_t>(p.rows[rows.row(p, rows.count - 1)].end);
  rows.kv_head = static_cast<int32_t>(kv_head);
  rows.table = p.tables + first.table;
  return rows;
}

// Copies of a chunk's keys and values to shared memory. Positions that no row sees are zero, or
// for keys whatever their block holds.
template <class Stored, int kBlocks, int kWarps>
struct ChunkCopies {
  using Shared = AttentionTileShared<Stored, kBlocks, kWarps>;
  using Chunks = StoredTile<Stored>;
  static constexpr uint32_t kThreads = kWarps * kWarpLanes;

  const AttentionKernelParams& p;
  const TiledRows& rows;
  Shared& shared;

  PL_DEVICE bool is_visible(int32_t position) const {
    return position >= rows.begin && position < rows.end;
  }
  PL_DEVICE int64_t kv_head() const { return rows.kv_head; }
  PL_DEVICE int64_t block_of(int32_t position) const {
    return rows.table[position >> p.block_bits];
  }
  PL_DEVICE int64_t place_in_block(int32_t position) const {
    return position & ((1 << p.block_bits) - 1);
  }

  // A thread takes the same positions of every dimension.
  PL_DEVICE void begin_keys(int32_t first_position) const {
    constexpr uint32_t kChunks = Chunks::kChunks;
    const uint32_t chunk = thread_index() % kChunks;
    const int32_t position = first_position + static_cast<int32_t>(chunk * Chunks::kPerChunk);
    constexpr auto kPerChunk = static_cast<int32_t>(Chunks::kPerChunk);
    const bool is_present = position < rows.end && position + kPerChunk > rows.begin;
    const Stored* from = nullptr;
    if (is_present) {
      from = static_cast<const Stored*>(p.kv.keys) + block_of(position) * p.kv.key_block_stride +
             kv_head() * p.kv.key_head_stride + place_in_block(position);
    }
    const auto dims = static_cast<uint32_t>(p.kv.head_dim);
    for (uint32_t d = thread_index() / kChunks; d < dims; d += kThreads / kChunks) {
      const uint32_t row = d % kTileWidth;
      copy_async(shared.keys[d / kTileWidth].chunk(row, chunk, row / 4 % 4),
                 is_present ? from + int64_t{d} * p.kv.block_size : nullptr, is_present);
    }
    if constexpr (kHasScales<Stored>) {
      begin_scales(p.kv.key_scales, first_position, shared.key_scales);
    }
    commit_copies();
  }

  // A thread takes the same dimensions of several positions.
  PL_DEVICE void begin_values(int32_t first_position) const {
    constexpr uint32_t kChunks = Chunks::kChunks, kOfPart = kValueBlocks<kBlocks> * kChunks;
    const uint32_t first = block_index().y % kValueParts<kBlocks> * kOfPart;
    const uint32_t left = static_cast<uint32_t>(p.kv.head_dim) / Chunks::kPerChunk - first;
    const uint32_t chunks = left < kOfPart ? left : kOfPart;
    for (uint32_t row = thread_index() / kChunks; row < kTileWidth; row += kThreads / kChunks) {
      const int32_t position = first_position + static_cast<int32_t>(row);
      const bool is_present = is_visible(position);
      const Stored* from = nullptr;
      if (is_present) {
        from = static_cast<const Stored*>(p.kv.values) +
               block_of(position) * p.kv.value_block_stride + kv_head() * p.kv.value_head_stride +
               place_in_block(position) * p.kv.head_dim;
      }
      for (uint32_t chunk = thread_index() % kChunks; chunk < chunks; chunk += kChunks) {
        copy_async(shared.values[chunk / kChunks].chunk(row, chunk % kChunks, row / 16),
                   is_present ? from + (first + chunk) * Chunks::kPerChunk : nullptr, is_present);
      }
    }
    if constexpr (kHasScales<Stored>) {
      begin_scales(p.kv.value_scales, first_position, shared.value_scales);
    }
    commit_copies();
  }

  PL_DEVICE void begin_scales(const float* scales, int32_t first_position,
                              Floats4 (&to)[kTileWidth / 4]) const {
    const uint32_t i = thread_index();
    if (i >= kTileWidth / 4) return;
    const int32_t position = first_position + static_cast<int32_t>(4 * i);
    const bool is_present = position < rows.end && position + 4 > rows.begin;
    const float* from = nullptr;
    if (is_present) {
      from = scales + block_of(position) * p.kv.scale_block_stride +
             kv_head() * p.kv.scale_head_stride + place_in_block(position);
    }
    copy_async(&to[i], from, is_present);
  }
};

// One of the two packed rows of a lane; absent ones see nothing.
struct TiledRow {
  int32_t first = 0;  // visible position
  int32_t end = 0;    // behind the last
  SoftmaxState softmax;

  PL_DEVICE bool sees(int32_t chunk) const {
    return end > chunk * kTiledKeys && first < (chunk + 1) * kTiledKeys;
  }
};

PL_DEVICE TiledRow tiled_row(const AttentionKernelParams& p, const TiledRows& rows,
                             int32_t packed) {
  if (packed >= rows.count) return {};
  const AttentionRow& row = p.rows[rows.row(p, packed)];
  return {static_cast<int32_t>(row.first), static_cast<int32_t>(row.end), {}};
}

// A chunk's scores of a lane, then their exponentials and weights: key 16 t + i of row g + 8 h.
struct ChunkScores {
  float of[8][4];

  PL_DEVICE float& key(int row, int i) { return of[i % 8][2 * row + i / 8]; }
};

// The numbers of four lanes that share a row.
template <class How>
PL_DEVICE float reduce_row(float value) {
  value = How::combine(value, shuffle_xor(value, 1));
  return How::combine(value, shuffle_xor(value, 2));
}

// "attention_bf16_128_prompt": for heads of up to 128, four warps; "..._decode" has one.
template <class Stored, int kBlocks, int kWarps>
constexpr std::string_view attention_tiles_name() {
  constexpr std::string_view kNames[2][2][4] = {
      {{"attention_bf16_64_decode", "attention_bf16_128_decode", "attention_bf16_192_decode",
        "attention_bf16_256_decode"},
       {"attention_bf16_64_prompt", "attention_bf16_128_prompt", "attention_bf16_192_prompt",
        "attention_bf16_256_prompt"}},
      {{"attention_i8_64_decode", "attention_i8_128_decode", "attention_i8_192_decode",
        "attention_i8_256_decode"},
       {"attention_i8_64_prompt", "attention_i8_128_prompt", "attention_i8_192_prompt",
        "attention_i8_256_prompt"}}};
  return kNames[kHasScales<Stored> ? 1 : 0][kWarps == 1 ? 0 : 1][kBlocks - 1];
}

// Tiles along x of the grid, kv heads and their parts along y; along z chunks, counted from a
// tile's first, where they are computed apart.
template <class Stored, int kBlocks, int kWarps>
struct AttentionTiles {
  static constexpr std::string_view kName = attention_tiles_name<Stored, kBlocks, kWarps>();
  static constexpr uint32_t kThreads = kWarps * kWarpLanes;
  using Params = AttentionKernelParams;
  using Shared = AttentionTileShared<Stored, kBlocks, kWarps>;
  using Copies = ChunkCopies<Stored, kBlocks, kWarps>;
  static constexpr uint32_t kParts = kValueParts<kBlocks>;
  static constexpr int kOwnBlocks = kValueBlocks<kBlocks>;

  // Merged values of a lane: dimension 64 b + 16 t + i of the part, of row g + 8 h, as ChunkScores
  // has keys.
  struct Values {
    ChunkScores of_block[kOwnBlocks];
  };

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const TiledRows tile = tiled_rows<kWarps>(p, block_index().y / kParts);
    const int32_t first = tile.begin / kTiledKeys;
    const int32_t end = (tile.end + kTiledKeys - 1) / kTiledKeys;
    const bool is_split = p.partials != nullptr;
    const int32_t chunk = is_split ? first + static_cast<int32_t>(block_index().z) : first;
    if (is_split && chunk >= end) return;
    TiledRow rows[2] = {tiled_row(p, tile, packed_row(0)), tiled_row(p, tile, packed_row(1))};
    load_queries(p, tile, shared);
    Values values{};
    attend(p, tile, chunk, is_split ? chunk + 1 : end, rows, shared, values);
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      if (packed_row(row) >= tile.count) continue;
      if (is_split) {
        save(p, tile, rows[row], row, chunk, values);
      } else {
        write(p, tile, rows[row].softmax, row, values);
      }
    }
  }

 private:
  // Row g or g + 8 of the warp.
  PL_DEVICE static int32_t packed_row(int row) {
    return static_cast<int32_t>(warp_index() * kTileRows + lane_index() / 4) + 8 * row;
  }

  // A lane's part of a step of 16 dimensions: 4 t to 4 t + 3 of rows g and g + 8.
  PL_DEVICE static void load_queries(const Params& p, const TiledRows& tile, Shared& shared) {
    for (int row = 0; row < 2; ++row) {
      const int32_t packed = packed_row(row);
      const bool is_present = packed < tile.count;
      const float* query = nullptr;
      if (is_present) {
        query = p.q.head(p.rows[tile.row(p, packed)].row * p.q.heads + tile.head(p, packed));
      }
      for (uint32_t step = 0; step < p.kv.head_dim / 16; ++step) {
        const uint32_t d = 16 * step + 4 * (lane_index() % 4);
        uint32_t* const to = shared.queries[warp_index()][step][lane_index()].words + row;
        to[0] = is_present ? pack_bf16(query[d], query[d + 1]) : 0u;
        to[2] = is_present ? pack_bf16(query[d + 2], query[d + 3]) : 0u;
      }
    }
  }

  PL_DEVICE static void attend(const Params& p, const TiledRows& tile, int32_t first, int32_t end,
                               TiledRow (&rows)[2], Shared& shared, Values& values) {
    const Copies copies{p, tile, shared};
    if (first < end) copies.begin_keys(first * kTiledKeys);
    for (int32_t chunk = first; chunk < end; ++chunk) {
      if (chunk > first) sync_threads();  // the values of the chunk before have been read
      copies.begin_values(chunk * kTiledKeys);
      wait_copies<1>();
      sync_threads();
      ChunkScores scores = multiply_keys(p, shared);
      SoftmaxState added[2];
      wait_copies<0>();
      sync_threads();  // values are there, and keys have been read
      weigh(p, chunk, rows, shared, scores, added);
      if (chunk + 1 < end) copies.begin_keys((chunk + 1) * kTiledKeys);
      merge(p, tile, chunk, rows, added, shared, scores, values);
    }
  }

  PL_DEVICE static ChunkScores multiply_keys(const Params& p, Shared& shared) {
    ChunkScores scores{};
    const uint32_t t = lane_index() % 4;
    for (uint32_t step = 0; step < p.kv.head_dim / 16; ++step) {
      const auto query = load_as<Words4>(&shared.queries[warp_index()][step][lane_index()]);
      const uint32_t a[4] = {query.words[0], query.words[1], query.words[2], query.words[3]};
      multiply_rows(shared.keys[step / 4], 16 * (step % 4) + 4 * t, t, 0, a, scores.of);
    }
    return scores;
  }

  // Makes weights of the dot products.
  PL_DEVICE static void weigh(const Params& p, int32_t chunk, const TiledRow (&rows)[2],
                              const Shared& shared, ChunkScores& scores, SoftmaxState (&added)[2]) {
    const uint32_t t = lane_index() % 4;
    const int32_t first_key = chunk * kTiledKeys + static_cast<int32_t>(16 * t);
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      const int32_t begin = rows[row].first - first_key, end = rows[row].end - first_key;
      const auto is_visible = [begin, end](int i) { return i >= begin && i < end; };
      float max = -kInfinity;
      PL_UNROLL
      for (int i = 0; i < 16; ++i) {
        float& score = scores.key(row, i);
        if constexpr (kHasScales<Stored>)
          score = score * shared.key_scales[4 * t + i / 4].of[i % 4];
        score = score_of(p, score);
        if (is_visible(i)) max = Maximum::combine(max, score);
      }
      max = reduce_row<Maximum>(max);
      float sum = 0.0f;
      PL_UNROLL
      for (int i = 0; i < 16; ++i) {
        float& score = scores.key(row, i);
        const float share = is_visible(i) ? exponential(score - max) : 0.0f;
        sum = sum + share;
        score = share;
        if constexpr (kHasScales<Stored>) {
          score = is_visible(i) ? share * shared.value_scales[4 * t + i / 4].of[i % 4] : 0.0f;
        }
      }
      added[row] = {max, reduce_row<Sum>(sum)};
    }
  }

  // Whether a row of the warp that sees the chunk doesn't see all of its keys that are there.
  PL_DEVICE static bool hides_any_key(const TiledRows& tile, int32_t chunk,
                                      const TiledRow (&rows)[2]) {
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

  // Whether a lane's products with a block of the values' dimensions are finite; dimensions behind
  // the head's last don't count.
  PL_DEVICE static bool are_finite(const Params& p, int block, const float (&products)[8][4]) {
    float zero = 0.0f;  // or NaN
    PL_UNROLL
    for (int i = 0; i < 32; ++i) {
      zero = fused_multiply_add(products[i / 4][i % 4], 0.0f, zero);
    }
    return zero == 0.0f || first_dimension(block) >= p.kv.head_dim;
  }

  // A lane's first dimension of a block.
  PL_DEVICE static uint32_t first_dimension(int block) {
    return 64 * (kOwnBlocks * (block_index().y % kParts) + static_cast<uint32_t>(block)) +
           16 * (lane_index() % 4);
  }

  // Multiplies the weights `a` with the values again, row by row. A value that the row doesn't see
  // counts as zero, so the row has the bits that it has alone.
  PL_DEVICE static void multiply_alone(int32_t chunk, const TiledRow (&rows)[2],
                                       const uint32_t (&a)[4][4], StoredTile<Stored>& tile,
                                       float (&products)[8][4]) {
    const uint32_t t = lane_index() % 4;
    const int32_t first_key = chunk * kTiledKeys + static_cast<int32_t>(16 * t);
    for (uint32_t row = 0; row < kTileRows; ++row) {
      const uint32_t lane = row % 8 * 4;
      const bool is_first = row < 8;
      const int32_t begin = shuffle(is_first ? rows[0].first : rows[1].first, lane) - first_key;
      const int32_t end = shuffle(is_first ? rows[0].end : rows[1].end, lane) - first_key;
      const auto kept = [begin, end](int32_t key) {
        const uint32_t low = key >= begin && key < end ? 0xFFFFu : 0u;
        return low | (key + 1 >= begin && key + 1 < end ? 0xFFFF0000u : 0u);
      };
      float alone[8][4] = {};
      PL_UNROLL
      for (int step = 0; step < 4; ++step) {
        multiply_rows(tile, 16 * t + 4 * static_cast<uint32_t>(step), t, 0, a[step], alone,
                      {{kept(4 * step), kept(4 * step + 2)}});
      }
      if (lane_index() / 4 != row % 8) continue;
      PL_UNROLL
      for (int i = 0; i < 32; ++i) {
        float& product = products[i / 4][i % 4];
        product = (i % 4 < 2) == is_first ? alone[i / 4][i % 4] : product;
      }
    }
  }

  // Weighs the chunk's values and merges them with those of the chunks before.
  PL_DEVICE static void merge(const Params& p, const TiledRows& tile, int32_t chunk,
                              TiledRow (&rows)[2], const SoftmaxState (&added)[2], Shared& shared,
                              ChunkScores& weights, Values& values) {
    MergeShares shares[2] = {{1.0f, 0.0f}, {1.0f, 0.0f}};
    bool sees[2];
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      sees[row] = rows[row].sees(chunk);
      if (sees[row]) shares[row] = merge_softmax(added[row], rows[row].softmax);
    }
    uint32_t a[4][4];
    PL_UNROLL
    for (int step = 0; step < 4; ++step) {
      PL_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int key = 4 * step + i / 2 * 2;
        a[step][i] = pack_bf16(weights.key(i % 2, key), weights.key(i % 2, key + 1));
      }
    }
    // Codes are finite.
    const bool hides_keys = !kHasScales<Stored> && hides_any_key(tile, chunk, rows);
    PL_UNROLL
    for (int block = 0; block < kOwnBlocks; ++block) {
      float products[8][4] = {};
      PL_UNROLL
      for (int step = 0; step < 4; ++step) {
        const uint32_t t = lane_index() % 4;
        multiply_rows(shared.values[block], 16 * t + 4 * static_cast<uint32_t>(step), t, 0, a[step],
                      products);
      }
      if constexpr (!kHasScales<Stored>) {
        if (hides_keys && any(!are_finite(p, block, products))) {
          multiply_alone(chunk, rows, a, shared.values[block], products);
        }
      }
      PL_UNROLL
      for (int i = 0; i < 32; ++i) {
        const int row = i % 4 / 2;
        if (!sees[row]) continue;
        float& value = values.of_block[block].of[i / 4][i % 4];
        value = shares[row].merge(products[i / 4][i % 4], value);
      }
    }
  }

  // Calls body(first dimension, four values) for a lane's dimensions of a row.
  template <class Body>
  PL_DEVICE static void for_each_piece(const Params& p, int row, Values& values, Body&& body) {
    PL_UNROLL
    for (int block = 0; block < kOwnBlocks; ++block) {
      PL_UNROLL
      for (int i = 0; i < 16; i += 4) {
        const uint32_t d = first_dimension(block) + static_cast<uint32_t>(i);
        if (d >= p.kv.head_dim) continue;
        ChunkScores& of = values.of_block[block];
        body(d,
             Floats4{{of.key(row, i), of.key(row, i + 1), of.key(row, i + 2), of.key(row, i + 3)}});
      }
    }
  }

  PL_DEVICE static void save(const Params& p, const TiledRows& tile, const TiledRow& own, int row,
                             int32_t chunk, Values& values) {
    if (!own.sees(chunk)) return;
    const int32_t packed = packed_row(row);
    float* const partial =
        partial_of(p, tile.row(p, packed), tile.head(p, packed), chunk - own.first / kTiledKeys);
    if (lane_index() % 4 == 0) {
      partial[0] = own.softmax.max;
      partial[1] = own.softmax.sum;
    }
    for_each_piece(p, row, values, [partial](uint32_t d, const Floats4& piece) {
      store_as(partial + kPartialHead + d, piece);
    });
  }

  PL_DEVICE static void write(const Params& p, const TiledRows& tile, const SoftmaxState& softmax,
                              int row, Values& values) {
    const int32_t packed = packed_row(row), head = tile.head(p, packed);
    const int64_t index = p.rows[tile.row(p, packed)].row;
    float* const out = p.out.head(index * p.out.heads + head);
    for_each_piece(p, row, values, [out, &softmax](uint32_t d, const Floats4& piece) {
      for (uint32_t i = 0; i < 4; ++i) out[d + i] = piece.of[i] / softmax.sum;
    });
    if (lane_index() % 4 > 0 || p.log_sum_exp.first == nullptr) return;
    p.log_sum_exp.row(index)[head] = log_of_sum(softmax);
  }
};

}  // namespace paceline::cuda
