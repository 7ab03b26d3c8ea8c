// Attention by matrix instructions of a warp, over stored bfloat16 or int8: tiles of 16 packed rows
// (rows times the heads of a kv head) for each warp, times chunks of 128 keys. Queries are rounded
// to bfloat16, as are the softmax's weights relative to the chunk's maximum. A chunk's products
// with values are eight steps of 16 keys in ascending order. Chunks are merged in ascending order
// as in attention.h, so that a row's bits depend on what it sees alone. A key that only other rows
// of a tile see has a weight of exactly 0. Where its value isn't finite, the row is multiplied
// again without it (multiply_alone). Zero times a finite value changes no bit of a sum unless the
// value is 2^100 times as large.
//
// Lane 4 g + t has rows g and g + 8 of the tile and four of each 16 keys (LaneKeys): the weights
// that an instruction leaves to a lane are what the next one takes from it. Keys and values stand
// in shared memory as they are stored, keys half a chunk at a time; load_transposed() makes pairs
// of neighbouring dimensions of keys, and of neighbouring values (attention_fragments.h).
//
// A block of one warp decodes: a chunk of keys and values is 32 KB with heads of 64 (64 KB with
// 128), and a multiprocessor's shared memory holds 6 (3) such blocks with their queries, 190 KB in
// flight where 23 KB keep its share of an H200's memory busy. A block of four warps has 64 packed
// rows of a prompt.
#pragma once

#include "kernels/cuda/code/attention_weights.h"

namespace paceline::cuda {

// A chunk's scores of a lane, then their exponentials and weights.
template <class Stored>
struct ChunkScores {
  float of_half[2][8][4];  // as instructions leave them

  // Key i of LaneKeys, of row g + 8 row.
  PL_DEVICE float& key(int row, int i) {
    const int j = kHasScales<Stored> ? i % 2 : i / 2 % 2,
              column = kHasScales<Stored> ? i / 2 % 2 : i % 2;
    return of_half[i / 16][i / 4 % 4 * 2 + j][2 * row + column];
  }
};

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
  static constexpr bool kHasTwoSlots = kKeySlots<kBlocks> == 2;
  using Scores = ChunkScores<Stored>;
  using Keys = LaneKeys<Stored>;

  // Merged values of a lane, as its instructions leave the products.
  struct Values {
    float of_block[kOwnBlocks][8][4];
  };

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const TiledRows tile = tiled_rows<kWarps>(p, block_index().y / kParts);
    RowPlace places[2];
    TiledRow rows[2] = {tiled_row(p, tile, packed_row(0), places[0]),
                        tiled_row(p, tile, packed_row(1), places[1])};
    const bool is_split = p.partials != nullptr;
    int32_t first = tile.begin / kTiledKeys, end = (tile.end + kTiledKeys - 1) / kTiledKeys;
    if (is_split) {
      first += static_cast<int32_t>(block_index().z) * p.chunks_of_block;
      end = first + p.chunks_of_block < end ? first + p.chunks_of_block : end;
      if (first >= end) return;
    }
    place_of(shared, 0) = places[0];
    place_of(shared, 1) = places[1];
    Values values{};
    if (first < end) attend(p, tile, first, end, rows, shared, values);
    if (is_split) return;
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      if (packed_row(row) < tile.count) {
        write(p, place_of(shared, row), rows[row].softmax, row, values);
      }
    }
  }

 private:
  // Row g or g + 8 of the warp.
  PL_DEVICE static int32_t packed_row(int row) {
    return static_cast<int32_t>(warp_index() * kTileRows + lane_index() / 4) + 8 * row;
  }
  PL_DEVICE static RowPlace& place_of(Shared& shared, int row) {
    return shared.places[warp_index()][8 * row + static_cast<int>(lane_index()) / 4];
  }
  // Whether any lane has such a row.
  PL_DEVICE static bool has_rows(const TiledRows& tile, int row) {
    return static_cast<int32_t>(warp_index() * kTileRows) + 8 * row < tile.count;
  }

  // A lane's part of a step of 16 dimensions: 4 t to 4 t + 3 of rows g and g + 8. What is loaded
  // for dimensions behind the last isn't read.
  PL_DEVICE static void load_queries(const Params& p, const TiledRows& tile, Shared& shared) {
    const auto last = static_cast<uint32_t>(p.kv.head_dim) - 16;
    for (uint32_t block = 0; 64 * block <= last; ++block) {
      PL_UNROLL
      for (int row = 0; row < 2; ++row) {
        const RowPlace place = place_of(shared, row);
        const float* const query = p.q.head(place.row, place.head) + lane_index() % 4 * 4;
        float loaded[4][4];
        PL_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t d = 64 * block + 16 * i;
          const float* const from = query + (d < last ? d : last);
          PL_UNROLL
          for (uint32_t k = 0; k < 4; ++k) loaded[i][k] = from[k];
        }
        const uint32_t kept = packed_row(row) < tile.count ? ~0u : 0u;
        PL_UNROLL
        for (uint32_t i = 0; i < 4; ++i) {
          uint32_t* const to = shared.queries[warp_index()][4 * block + i][lane_index()].words;
          to[row] = pack_bf16(loaded[i][0], loaded[i][1]) & kept;
          to[row + 2] = pack_bf16(loaded[i][2], loaded[i][3]) & kept;
        }
      }
    }
  }

  // The copies of a chunk are under way when the one before has been multiplied; of longer heads,
  // whose halves take turns, those of its first half and its values.
  PL_DEVICE static void attend(const Params& p, const TiledRows& tile, int32_t first, int32_t end,
                               TiledRow (&rows)[2], Shared& shared, Values& values) {
    const Copies copies{p, tile, shared};
    int32_t blocks[2], next_blocks[2];
    load_blocks(copies, first, blocks);
    copies.begin_keys(first * kTiledKeys, 0, blocks[0]);
    if constexpr (kHasTwoSlots) copies.begin_keys(first * kTiledKeys + kHalfKeys, 1, blocks[1]);
    copies.begin_values(first * kTiledKeys, blocks);
    load_queries(p, tile, shared);
    for (int32_t chunk = first; chunk < end; ++chunk) {
      const int32_t next = chunk + 1;
      if (next < end) load_blocks(copies, next, next_blocks);
      Scores scores{};
      PL_UNROLL
      for (uint32_t half = 0; half < 2; ++half) {
        wait_copies<kHasTwoSlots ? 2 : 1>();
        if constexpr (!kHasTwoSlots) {
          if (half > 0) wait_copies();
        }
        sync_threads();  // keys are there
        const int32_t position = chunk * kTiledKeys + static_cast<int32_t>(half) * kHalfKeys;
        if (has_rows(tile, 0) && copies.sees_half(position)) {
          multiply_keys(p, shared, half, scores);
        }
        sync_threads();  // keys have been read
        if (!kHasTwoSlots && half == 0) {
          copies.begin_keys(position + kHalfKeys, 1, blocks[1]);
        } else if (next < end) {
          const uint32_t slot_half = kHasTwoSlots ? half : 0;
          copies.begin_keys(next * kTiledKeys + static_cast<int32_t>(slot_half) * kHalfKeys,
                            slot_half, next_blocks[slot_half]);
        } else {
          commit_copies();
        }
      }
      if constexpr (kHasTwoSlots) {  // else they came with the keys' second half
        wait_copies<2>();
        sync_threads();  // values are there
      }
      if (has_rows(tile, 0)) add_chunk(p, tile, chunk, rows, shared, scores, values);
      if (next == end) break;
      sync_threads();  // values have been read
      copies.begin_values(next * kTiledKeys, next_blocks);
      blocks[0] = next_blocks[0];
      blocks[1] = next_blocks[1];
    }
  }

  PL_DEVICE static void load_blocks(const Copies& copies, int32_t chunk, int32_t (&blocks)[2]) {
    blocks[0] = copies.load_blocks(chunk * kTiledKeys);
    blocks[1] = copies.load_blocks(chunk * kTiledKeys + kHalfKeys);
  }

  PL_DEVICE static void multiply_keys(const Params& p, Shared& shared, uint32_t half,
                                      Scores& scores) {
    const uint32_t t = lane_index() % 4, steps = static_cast<uint32_t>(p.kv.head_dim) / 16;
    auto& keys = shared.keys[half % kKeySlots<kBlocks>];
    auto& of_half = scores.of_half[half];
    const auto multiply_step = [&](uint32_t step) {
      const auto query = load_as<Words4>(&shared.queries[warp_index()][step][lane_index()]);
      const uint32_t a[4] = {query.words[0], query.words[1], query.words[2], query.words[3]};
      multiply_keys_of_step(keys[step / 4], step % 4, a, of_half);
    };
    if constexpr (kHasScales<Stored>) {  // making pairs of codes takes registers
      PL_ROLLED
      for (uint32_t step = 0; step < steps; ++step) multiply_step(step);
    } else {
      PL_ROLLED
      for (uint32_t step = 0; step + 1 < steps; step += 2) {
        multiply_step(step);
        multiply_step(step + 1);
      }
      if (steps % 2 > 0) multiply_step(steps - 1);
    }
    if constexpr (kHasScales<Stored>) {
      PL_UNROLL
      for (int i = 0; i < 16; ++i) {
        const float scale = shared.key_scales[half][static_cast<uint32_t>(i / 4 * 4) + t].of[i % 4];
        const int key = static_cast<int>(half) * 16 + i;
        scores.key(0, key) = scores.key(0, key) * scale;
        scores.key(1, key) = scores.key(1, key) * scale;
      }
    }
  }

  PL_DEVICE static void add_chunk(const Params& p, const TiledRows& tile, int32_t chunk,
                                  TiledRow (&rows)[2], Shared& shared, Scores& scores,
                                  Values& values) {
    uint32_t a[kValueSteps][4] = {};
    MergeShares shares[2] = {{1.0f, 0.0f}, {1.0f, 0.0f}};
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      if (row > 0 && !has_rows(tile, row)) continue;
      const SoftmaxState added = weigh_scores<Stored>(p, chunk, rows[row], row, scores);
      if constexpr (kHasScales<Stored>) {
        scale_weights(shared.value_scales[0], chunk, rows[row], row, scores);
      }
      if (rows[row].sees(chunk)) shares[row] = merge_softmax(added, rows[row].softmax);
      pack_weights(row, scores, a);
    }
    merge(p, tile, chunk, rows, a, shares, shared, values);
    if (p.partials == nullptr) return;
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      if (rows[row].sees(chunk)) save(p, rows[row], place_of(shared, row), row, chunk, values);
      rows[row].softmax = {};
    }
    values = {};
  }

  // Whether a lane's products by instructions begin to begin + 3 of a block of dimensions are
  // finite; dimensions behind the head's last don't count.
  PL_DEVICE static bool are_finite(const Params& p, int block, uint32_t begin,
                                   const float (&products)[4][4]) {
    float zero = 0.0f;  // or NaN
    PL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      if (first_dimension(block) + 8 * (begin + i) >= p.kv.head_dim) continue;
      PL_UNROLL
      for (const float product : products[i]) zero = fused_multiply_add(product, 0.0f, zero);
    }
    return zero == 0.0f;
  }

  // The first dimension of a block.
  PL_DEVICE static uint32_t first_dimension(int block) {
    return 64 * (kOwnBlocks * (block_index().y % kParts) + static_cast<uint32_t>(block));
  }

  // Multiplies the weights `a` with the values again, row by row. A value that the row doesn't see
  // counts as zero, so the row has the bits that it has alone.
  PL_DEVICE static void multiply_alone(int32_t chunk, const TiledRow (&rows)[2],
                                       const uint32_t (&a)[kValueSteps][4], Shared& shared,
                                       int block, uint32_t begin_of_four, float (&products)[4][4]) {
    PL_ROLLED
    for (uint32_t row = 0; row < kTileRows; ++row) {
      const bool is_first = row < 8;
      const SeenKeys seen = seen_keys_of<Stored>(chunk, rows, row);
      // Two instructions at a time, as registers are few here.
      PL_UNROLL
      for (int first = 0; first < 4; first += 2) {
        float alone[2][4] = {};
        PL_UNROLL
        for (int step = 0; step < kValueSteps; ++step) {
          multiply_loaded_rows(
              shared.values[step / 4][block], loaded_position(),
              16 * static_cast<uint32_t>(step % 4), begin_of_four + static_cast<uint32_t>(first),
              a[step], alone,
              {{seen.pair(Keys::offset(4 * step)), seen.pair(Keys::offset(4 * step + 2))}});
        }
        PL_UNROLL
        for (int i = 0; i < 8; ++i) {
          float& product = products[first + i / 4][i % 4];
          const bool is_own = lane_index() / 4 == row % 8 && (i % 4 < 2) == is_first;
          product = is_own ? alone[i / 4][i % 4] : product;
        }
      }
    }
  }

  // Multiplies the chunk's values with the weights `a` and merges them with those of the chunks
  // before.
  PL_DEVICE static void merge(const Params& p, const TiledRows& tile, int32_t chunk,
                              const TiledRow (&rows)[2], const uint32_t (&a)[kValueSteps][4],
                              const MergeShares (&shares)[2], Shared& shared, Values& values) {
    // Codes are finite.
    const bool hides_keys = !kHasScales<Stored> && hides_any_key(tile, chunk, rows);
    // Four instructions of eight at a time, as registers are few here.
    PL_UNROLL
    for (int part = 0; part < 2 * kOwnBlocks; ++part) {
      if constexpr (kHasScales<Stored>) keep_loads_behind();  // those of the next part's codes
      const int block = part / 2, first = part % 2 * 4;
      const auto begin = static_cast<uint32_t>(first);
      float products[4][4] = {};
      PL_UNROLL
      for (int step = 0; step < kValueSteps; ++step) {
        multiply_values(shared.values[step / 4][block], static_cast<uint32_t>(step % 4), begin,
                        a[step], products);
      }
      if constexpr (!kHasScales<Stored>) {
        if (hides_keys && any(!are_finite(p, block, begin, products))) {
          multiply_alone(chunk, rows, a, shared, block, begin, products);
        }
      }
      PL_UNROLL
      for (int row = 0; row < 2; ++row) {
        if (!rows[row].sees(chunk)) continue;
        PL_UNROLL
        for (int i = 0; i < 8; ++i) {
          const int column = 2 * row + i % 2;
          float& value = values.of_block[block][first + i / 2][column];
          value = shares[row].merge(products[i / 2][column], value);
        }
      }
    }
  }

  // Calls body(first dimension, pair) for a lane's dimensions of a row.
  template <class Body>
  PL_DEVICE static void for_each_pair(const Params& p, int row, const Values& values, Body&& body) {
    PL_UNROLL
    for (int block = 0; block < kOwnBlocks; ++block) {
      PL_UNROLL
      for (uint32_t i = 0; i < 8; ++i) {
        const ColumnPair pair = column_pair<Stored>(values.of_block[block], row, i);
        const uint32_t d = first_dimension(block) + pair.first;
        if (d < p.kv.head_dim) body(d, pair);
      }
    }
  }

  PL_DEVICE static void save(const Params& p, const TiledRow& own, const RowPlace& place, int row,
                             int32_t chunk, const Values& values) {
    float* const partial = partial_of(p, place.index, place.head, chunk - own.first / kTiledKeys);
    if (lane_index() % 4 == 0) {
      partial[0] = own.softmax.max;
      partial[1] = own.softmax.sum;
    }
    for_each_pair(p, row, values, [partial](uint32_t d, const ColumnPair& pair) {
      const Words<2> bits = {{bits_of_float(pair.of[0]), bits_of_float(pair.of[1])}};
      store_as(partial + kPartialHead + d, bits);
    });
  }

  PL_DEVICE static void write(const Params& p, const RowPlace& place, const SoftmaxState& softmax,
                              int row, const Values& values) {
    float* const out = p.out.head(place.row, place.head);
    for_each_pair(p, row, values, [out, &softmax](uint32_t d, const ColumnPair& pair) {
      for (uint32_t i = 0; i < 2; ++i) out[d + i] = pair.of[i] / softmax.sum;
    });
    if (lane_index() % 4 > 0 || p.log_sum_exp.first == nullptr) return;
    p.log_sum_exp.row(place.row)[place.head] = log_of_sum(softmax);
  }
};

}  // namespace paceline::cuda
