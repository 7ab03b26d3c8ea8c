// Attention of prompts by the matrix instructions of warpgroups (Hopper), over stored bfloat16,
// with heads of up to 128, of 192 and of 256: the rule of attention_tiles.h, and its bits, as both
// instructions have the same.
//
// A block has 128 packed rows of a kv head: two warpgroups of 64, whose queries stand in registers,
// as do a chunk's weights. A third warpgroup copies keys and values of chunks of 128 in turn into a
// ring. Both stand there as rows of 16 bytes, as they are stored: eight keys of each dimension, and
// eight dimensions of each value. An operand's neighbouring elements are then those of columns,
// which the instructions take turned.
//
// Codes become bfloat16 on their way to the ring, in the order in which a lane has its keys
// (LaneKeys), with the scales beside them.
//
// Of longer heads a block has 64 packed rows, whose queries stand in shared memory. Both warpgroups
// compute their weights, and each has half of the values.
#pragma once

#include "kernels/cuda/code/attention_weights.h"
#include "kernels/cuda/code/kernel_name.h"
#include "kernels/cuda/code/ring_place.h"

namespace paceline::cuda {

constexpr uint32_t kRowBytes = 16;  // of eight elements of an operand

// kBlocks: 64 dimensions each.
template <int kBlocks>
struct GroupsShape {
  static constexpr uint32_t kDims = uint32_t{kTileWidth} * kBlocks;
  static constexpr uint32_t kItemBytes = kTiledKeys * kDims * 2;  // a chunk's keys, or its values
  static constexpr uint32_t kRingBytes = 192 * 1024;
  static constexpr uint32_t kMostItems = kRingBytes / kItemBytes;
  static constexpr uint32_t kItems = kMostItems < 8 ? kMostItems : 8;
  static constexpr uint32_t kUnderWay = kItems > 3 ? 3 : 2;  // behind the one that is begun
  static constexpr bool kIsLong = kBlocks > 2;
  static constexpr uint32_t kOwnDims = kIsLong ? kDims / 2 : kDims;  // values of a warpgroup
  static constexpr uint32_t kQueryBytes = kIsLong ? kGroupRows * kDims * 2 : kRowBytes;
  // Items of keys have slots of their own, where something stands behind their last dimension.
  static_assert(kIsLong || kItems % 2 == 0);
};

template <class Stored, int kBlocks>
struct AttentionGroupsShared {
  using Shape = GroupsShape<kBlocks>;
  alignas(128) std::byte items[Shape::kItems][Shape::kItemBytes];  // keys and values in turn
  alignas(128) std::byte queries[Shape::kQueryBytes];  // of long heads: [dimension / 8][row][8]
  Floats4 scales[kHasScales<Stored> ? Shape::kItems : 1][kTiledKeys / 4];  // of codes
  BarrierState landed[Shape::kItems];
  BarrierState read[Shape::kItems];
  BarrierState has_queries;
};

// Copies of a chunk's keys and values by a warpgroup. Positions that no row sees are zero, or for
// keys whatever their block holds.
template <class Stored, int kBlocks>
struct GroupCopies {
  static constexpr uint32_t kDims = GroupsShape<kBlocks>::kDims;
  static constexpr uint32_t kWarps = kGroupThreads / kWarpLanes;
  static constexpr uint32_t kKeysAtOnce = 16;  // of a warp

  const AttentionKernelParams& p;
  const TiledRows& rows;

  PL_DEVICE static uint32_t own_warp() { return warp_index() % kWarps; }

  // Where the kv head begins in the block of a position, or of the nearest visible one.
  PL_DEVICE int64_t head_place(int32_t position, int64_t block_stride, int64_t head_stride) const {
    const int32_t before_end = position < rows.end ? position : rows.end - 1;
    const int32_t nearest = before_end > rows.begin ? before_end : rows.begin;
    const int32_t block = p.tables[rows.table + (nearest >> p.block_bits)];
    return block * block_stride + rows.kv_head * head_stride;
  }
  PL_DEVICE uint32_t place_in_block(int32_t position) const {
    return static_cast<uint32_t>(position) & ((1u << p.block_bits) - 1);
  }

  // Half of a warp takes eight keys, each lane every 16th dimension of them.
  PL_DEVICE void copy_keys(int32_t chunk, std::byte* item) const {
    const auto dims = static_cast<uint32_t>(p.kv.head_dim);
    const uint32_t lane = lane_index(), d = lane % 16;
    PL_UNROLL
    for (uint32_t first = own_warp(); first < kTiledKeys / kKeysAtOnce; first += kWarps) {
      const uint32_t group = 2 * first + lane / 16;
      const int32_t position = chunk * kTiledKeys + static_cast<int32_t>(8 * group);
      const bool is_present = position < rows.end && position + 8 > rows.begin;
      const Stored* from = static_cast<const Stored*>(p.kv.keys) +
                           head_place(position, p.kv.key_block_stride, p.kv.key_head_stride) +
                           place_in_block(position) + (d << p.block_bits);
      std::byte* to = item + (group * kDims + d) * kRowBytes;
      PL_ROLLED
      for (uint32_t left = dims / 16; left > 0; --left) {
        copy_async(to, from, is_present);
        from += 16 << p.block_bits;
        to += 16 * kRowBytes;
      }
    }
  }

  // Half of a warp takes eight dimensions of 16 positions, then those 16 further on.
  PL_DEVICE void copy_values(int32_t chunk, std::byte* item) const {
    const auto dims = static_cast<uint32_t>(p.kv.head_dim);
    const uint32_t lane = lane_index(), half = lane / 16;
    PL_UNROLL
    for (uint32_t first = own_warp(); first < kTiledKeys / kKeysAtOnce; first += kWarps) {
      const uint32_t key = kKeysAtOnce * first + lane % 16;
      const int32_t position = chunk * kTiledKeys + static_cast<int32_t>(key);
      const bool is_present = is_seen(position);
      const Stored* from = static_cast<const Stored*>(p.kv.values) +
                           head_place(position, p.kv.value_block_stride, p.kv.value_head_stride) +
                           place_in_block(position) * dims + 8 * half;
      std::byte* to = item + (half * kTiledKeys + key) * kRowBytes;
      PL_ROLLED
      for (uint32_t left = dims / 16; left > 0; --left) {
        copy_async(to, from, is_present);
        from += 16;
        to += 2 * kTiledKeys * kRowBytes;
      }
    }
  }

  // The same of codes. A lane takes 16 keys of every 32nd dimension.
  PL_DEVICE void expand_keys(int32_t chunk, std::byte* item) const {
    const auto dims = static_cast<uint32_t>(p.kv.head_dim);
    PL_ROLLED
    for (uint32_t first = own_warp(); first < kTiledKeys / kKeysAtOnce; first += kWarps) {
      const int32_t position = chunk * kTiledKeys + static_cast<int32_t>(kKeysAtOnce * first);
      const bool is_present =
          position < rows.end && position + static_cast<int32_t>(kKeysAtOnce) > rows.begin;
      const Stored* const from = static_cast<const Stored*>(p.kv.keys) +
                                 head_place(position, p.kv.key_block_stride, p.kv.key_head_stride) +
                                 place_in_block(position);
      for (uint32_t d = lane_index(); d < dims; d += kWarpLanes) {
        const Words4 codes = is_present ? load_as<Words4>(from + (d << p.block_bits)) : Words4{};
        PL_UNROLL
        for (uint32_t half = 0; half < 2; ++half) {
          Words4 words;
          PL_UNROLL
          for (int i = 0; i < 4; ++i) words.words[i] = code_pair(codes.words[i], half);
          store_as(item + ((2 * first + half) * kDims + d) * kRowBytes, words);
        }
      }
    }
  }

  // A lane takes 16 dimensions of a position at once; halves of a warp take turns.
  PL_DEVICE void expand_values(int32_t chunk, std::byte* item) const {
    const auto dims = static_cast<uint32_t>(p.kv.head_dim);
    const uint32_t column = lane_index() % 16, half = lane_index() / 16;
    const uint32_t key = column % 8 / 2 * 4 + column / 8 * 2 + column % 2;
    PL_ROLLED
    for (uint32_t first = own_warp(); first < kTiledKeys / kKeysAtOnce; first += kWarps) {
      const int32_t position = chunk * kTiledKeys + static_cast<int32_t>(kKeysAtOnce * first + key);
      const Stored* const from =
          static_cast<const Stored*>(p.kv.values) +
          head_place(position, p.kv.value_block_stride, p.kv.value_head_stride) +
          place_in_block(position) * dims;
      std::byte* const to = item + (kKeysAtOnce * first + column) * kRowBytes;
      for (uint32_t d = 16 * half; d < dims; d += 32) {
        const Words4 codes = is_seen(position) ? load_as<Words4>(from + d) : Words4{};
        PL_UNROLL
        for (uint32_t eight = 0; eight < 2; ++eight) {
          Words4 words;
          PL_UNROLL
          for (uint32_t i = 0; i < 4; ++i) {
            words.words[i] = code_pair(codes.words[2 * eight + i / 2], i % 2);
          }
          store_as(to + (d / 8 + eight) * (kTiledKeys * kRowBytes), words);
        }
      }
    }
  }

  // A thread's key.
  PL_DEVICE void copy_scales(const float* scales, int32_t chunk, Floats4* to) const {
    const uint32_t key = thread_index() % kGroupThreads;
    const int32_t position = chunk * kTiledKeys + static_cast<int32_t>(key);
    const int64_t place = head_place(position, p.kv.scale_block_stride, p.kv.scale_head_stride) +
                          place_in_block(position);
    to[key / 4].of[key % 4] = is_seen(position) ? scales[place] : 0.0f;
  }

  PL_DEVICE bool is_seen(int32_t position) const {
    return position >= rows.begin && position < rows.end;
  }

  // Codes 2 half and 2 half + 1 of four, as bfloat16.
  PL_DEVICE static uint32_t code_pair(uint32_t codes, uint32_t half) {
    const auto code = [codes](uint32_t i) {
      return static_cast<float>(static_cast<int8_t>(codes >> 8 * i & 0xFFu));
    };
    return pack_bf16(code(2 * half), code(2 * half + 1));
  }

  // Dimensions behind the head's last, which no copy writes: products add zeros.
  PL_DEVICE void clear_rest(std::byte* item) const {
    const auto dims = static_cast<uint32_t>(p.kv.head_dim);
    for (uint32_t i = thread_index() % kGroupThreads; i < kTiledKeys / 8 * kDims;
         i += kGroupThreads) {
      if (i % kDims >= dims) store_as(item + i * kRowBytes, Words4{});
    }
  }
};

// A chunk's scores of a lane as a warpgroup's product leaves them.
struct GroupScores {
  float of[kTiledKeys / 2];

  PL_DEVICE float& key(int row, int i) { return of[i / 2 * 4 + 2 * row + i % 2]; }
};

// The 64 packed rows of a warpgroup: a lane's part of two of them, with all of their values or
// half.
template <class Stored, int kBlocks>
struct GroupRows {
  using Shape = GroupsShape<kBlocks>;
  static constexpr int kSteps = Shape::kDims / 16;
  static constexpr int kOfLane = Shape::kOwnDims / 2;  // values, as a product leaves them
  static constexpr uint32_t kQueryStride = kGroupRows * kRowBytes;  // of eight dimensions
  using Weights = uint32_t[kValueSteps][4];

  const AttentionKernelParams& p;
  const TiledRows& tile;
  AttentionGroupsShared<Stored, kBlocks>& shared;
  TiledRow rows[2];
  uint32_t queries[Shape::kIsLong ? 1 : kSteps][4];
  float values[kOfLane] = {};  // merged

  PL_DEVICE GroupRows(const AttentionKernelParams& params, const TiledRows& its_tile,
                      AttentionGroupsShared<Stored, kBlocks>& its_shared)
      : p(params), tile(its_tile), shared(its_shared) {
    RowPlace place;
    PL_UNROLL
    for (int row = 0; row < 2; ++row) rows[row] = tiled_row(p, tile, packed_row(row), place);
    if constexpr (Shape::kIsLong) {
      share_queries();
    } else {
      load_queries();
    }
  }

  // The first packed row of the warpgroup, and its first dimension of the values.
  PL_DEVICE static uint32_t first_row() {
    return Shape::kIsLong ? 0 : warp_index() / 4 * kGroupRows;
  }
  PL_DEVICE static uint32_t first_dimension() {
    return Shape::kIsLong ? warp_index() / 4 * Shape::kOwnDims : 0;
  }

  // Row g or g + 8 of the warp.
  PL_DEVICE static int32_t packed_row(int row) {
    const uint32_t first = first_row() + warp_index() % 4 * kTileRows;
    return static_cast<int32_t>(first + lane_index() / 4) + 8 * row;
  }

  // Both warpgroups round the block's queries. Zeros for absent rows.
  PL_DEVICE void share_queries() {
    const uint32_t packed = thread_index() % kGroupRows;
    RowPlace place;
    tiled_row(p, tile, static_cast<int32_t>(packed), place);
    const uint32_t kept = static_cast<int32_t>(packed) < tile.count ? ~0u : 0u;
    const float* const query = p.q.head(place.row, place.head);
    PL_ROLLED
    for (uint32_t eight = thread_index() / kGroupRows; eight < Shape::kDims / 8;
         eight += 2 * kGroupThreads / kGroupRows) {
      const float* const from = query + 8 * eight;
      Words4 words;
      PL_UNROLL
      for (int i = 0; i < 4; ++i) words.words[i] = pack_bf16(from[2 * i], from[2 * i + 1]) & kept;
      store_as(shared.queries + eight * kQueryStride + packed * kRowBytes, words);
    }
    publish_to_products();
    arrive_as_warp(shared.has_queries);
    wait_barrier(shared.has_queries, 0);
  }

  // Zeros for absent rows, and behind a head's last dimension.
  PL_DEVICE void load_queries() {
    const auto dims = static_cast<int32_t>(p.kv.head_dim);
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      RowPlace place;
      tiled_row(p, tile, packed_row(row), place);
      const float* const query = p.q.head(place.row, place.head) + 2 * (lane_index() % 4);
      const int32_t end = packed_row(row) < tile.count ? dims : 0;
      PL_UNROLL
      for (int step = 0; step < kSteps; ++step) {
        const bool is_there = 16 * step < end;
        PL_UNROLL
        for (int half = 0; half < 2; ++half) {
          const float* const from = query + (is_there ? 16 * step + 8 * half : 0);
          queries[step][row + 2 * half] = pack_bf16(from[0], from[1]) & (is_there ? ~0u : 0u);
        }
      }
    }
  }

  PL_DEVICE void multiply_keys(const std::byte* keys, GroupScores& scores) {
    begin_products();
    PL_UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const CoreMatrices own{keys + step * 16 * static_cast<int>(kRowBytes), 8 * kRowBytes,
                             Shape::kDims * kRowBytes};
      if constexpr (Shape::kIsLong) {
        const CoreMatrices rounded{shared.queries + step * 2 * static_cast<int>(kQueryStride),
                                   kQueryStride, 8 * kRowBytes};
        multiply_group_turned<kTiledKeys>(scores.of, rounded, own, step > 0);
      } else {
        multiply_group_turned<kTiledKeys>(scores.of, queries[step], own, step > 0);
      }
    }
    commit_products();
    wait_products<0>(scores.of);
    if constexpr (!Shape::kIsLong) {
      PL_UNROLL
      for (auto& query : queries) keep_operand(query);
    }
  }

  PL_DEVICE void scale_scores(const Floats4* scales, GroupScores& scores) const {
    PL_UNROLL
    for (int i = 0; i < kLaneKeys; i += 4) {
      const auto four = load_as<Floats4>(scales + i + static_cast<int>(lane_index() % 4));
      PL_UNROLL
      for (int k = 0; k < 4; ++k) {
        PL_UNROLL
        for (int row = 0; row < 2; ++row) {
          scores.key(row, i + k) = scores.key(row, i + k) * four.of[k];
        }
      }
    }
  }

  // Makes weights of a chunk's scores; `scales` are those of the values of codes.
  PL_DEVICE void weigh(int32_t chunk, const Floats4* scales, GroupScores& scores, Weights& weights,
                       MergeShares (&shares)[2]) {
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      const SoftmaxState added = weigh_scores<Stored>(p, chunk, rows[row], row, scores);
      if constexpr (kHasScales<Stored>) scale_weights(scales, chunk, rows[row], row, scores);
      shares[row] = {1.0f, 0.0f};
      if (rows[row].sees(chunk)) shares[row] = merge_softmax(added, rows[row].softmax);
      pack_weights(row, scores, weights);
    }
  }

  // Multiplies the chunk's values with the weights and merges them with those of the chunks before.
  PL_DEVICE void add_values(int32_t chunk, const std::byte* item, Weights& weights,
                            const MergeShares (&shares)[2]) {
    const std::byte* const own_values = item + first_dimension() / 8 * (kTiledKeys * kRowBytes);
    float products[kOfLane];
    begin_products();
    PL_UNROLL
    for (int step = 0; step < kValueSteps; ++step) {
      const CoreMatrices own{own_values + step * 16 * static_cast<int>(kRowBytes), 8 * kRowBytes,
                             kTiledKeys * kRowBytes};
      multiply_group_turned<Shape::kOwnDims>(products, weights[step], own, step > 0);
    }
    commit_products();
    wait_products<0>(products);
    PL_UNROLL
    for (auto& of_step : weights) keep_operand(of_step);
    if constexpr (!kHasScales<Stored>) {  // codes are finite
      if (hides_any_key(tile, chunk, rows) && any(!are_finite(products))) {
        multiply_alone(chunk, own_values, weights, products);
        if constexpr (!Shape::kIsLong) load_queries();  // registers don't hold them meanwhile
      }
    }
    PL_UNROLL
    for (int row = 0; row < 2; ++row) {
      if (!rows[row].sees(chunk)) continue;
      PL_UNROLL
      for (int i = 0; i < kOfLane / 2; ++i) {
        const int place = i / 2 * 4 + 2 * row + i % 2;
        values[place] = shares[row].merge(products[place], values[place]);
      }
    }
  }

  PL_DEVICE void write(int row) const {
    if (packed_row(row) >= tile.count) return;
    RowPlace place;
    tiled_row(p, tile, packed_row(row), place);
    const SoftmaxState& softmax = rows[row].softmax;
    const uint32_t t = lane_index() % 4;
    float* const out = p.out.head(place.row, place.head);
    PL_UNROLL
    for (int i = 0; i < kOfLane / 4; ++i) {
      const uint32_t d = first_dimension() + 8 * static_cast<uint32_t>(i) + 2 * t;
      if (d >= p.kv.head_dim) continue;
      PL_UNROLL
      for (int k = 0; k < 2; ++k) {
        out[d + static_cast<uint32_t>(k)] = values[4 * i + 2 * row + k] / softmax.sum;
      }
    }
    if (t > 0 || first_dimension() > 0 || p.log_sum_exp.first == nullptr) return;
    p.log_sum_exp.row(place.row)[place.head] = log_of_sum(softmax);
  }

 private:
  // Dimensions behind the head's last don't count.
  PL_DEVICE bool are_finite(const float (&products)[kOfLane]) const {
    float zero = 0.0f;  // or NaN
    PL_UNROLL
    for (int i = 0; i < kOfLane; ++i) {
      if (i / 4 * 8 < p.kv.head_dim) zero = fused_multiply_add(products[i], 0.0f, zero);
    }
    return zero == 0.0f;
  }

  // Multiplies again, row by row, by instructions of the warp. A value that the row doesn't see
  // counts as zero, so the row has the bits that it has alone.
  PL_DEVICE void multiply_alone(int32_t chunk, const std::byte* item, const Weights& weights,
                                float (&products)[kOfLane]) const {
    using Keys = LaneKeys<Bf16>;
    const uint32_t lane = lane_index();
    PL_ROLLED
    for (uint32_t row = 0; row < kTileRows; ++row) {
      const bool is_own = lane / 4 == row % 8;
      const SeenKeys seen = seen_keys_of<Bf16>(chunk, rows, row);
      // Two instructions at a time, each for eight dimensions.
      PL_UNROLL
      for (int first = 0; first < static_cast<int>(Shape::kOwnDims) / 8; first += 2) {
        float alone[2][4] = {};
        PL_UNROLL
        for (int step = 0; step < kValueSteps; ++step) {
          const uint32_t key = static_cast<uint32_t>(step) * 16 + lane % 16;
          const uint32_t group = static_cast<uint32_t>(first) + lane / 16;
          uint32_t b[4];
          load_transposed(b, item + (group * kTiledKeys + key) * kRowBytes);
          PL_UNROLL
          for (int i = 0; i < 2; ++i) {
            const uint32_t kept[2] = {b[2 * i] & seen.pair(Keys::offset(4 * step)),
                                      b[2 * i + 1] & seen.pair(Keys::offset(4 * step + 2))};
            mma_bf16(alone[i], weights[step], kept);
          }
        }
        PL_UNROLL
        for (int i = 0; i < 8; ++i) {
          float& product = products[4 * first + i];
          product = is_own && (i % 4 < 2) == (row < 8) ? alone[i / 4][i % 4] : product;
        }
      }
    }
  }
};

// Tiles along x of the grid, kv heads along y.
template <class Stored, int kBlocks>
struct AttentionGroups {
  static constexpr KernelName kFullName{
      kHasScales<Stored> ? "attention_groups_i8_" : "attention_groups_bf16_", kBlocks == 1   ? "64"
                                                                              : kBlocks == 2 ? "128"
                                                                              : kBlocks == 3
                                                                                  ? "192"
                                                                                  : "256"};
  static constexpr std::string_view kName = kFullName.text();
  static constexpr uint32_t kGroups = 2;
  static constexpr uint32_t kMultipliers = kGroups * kGroupThreads / kWarpLanes;  // warps
  static constexpr uint32_t kThreads = (kGroups + 1) * kGroupThreads;
  static constexpr uint32_t kBlocksAtOnce = 1;
  static constexpr uint32_t kGivenRegisters = 40;
  static constexpr uint32_t kTakenRegisters = 232;
  static_assert((kGroups * kTakenRegisters + kGivenRegisters) * kGroupThreads <=
                kThreads * (65536 / kThreads / 8 * 8));
  static constexpr bool kBeginsLate = true;  // blocks fill a multiprocessor
  using Params = AttentionKernelParams;
  using Shared = AttentionGroupsShared<Stored, kBlocks>;
  using Shape = GroupsShape<kBlocks>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    if constexpr (!kCanTakeRegisters) return;
    make_barriers(shared);
    const TiledRows tile = tiled_rows<kMultipliers>(p, block_index().y);
    const Range chunks = {tile.begin / kTiledKeys, (tile.end + kTiledKeys - 1) / kTiledKeys};
    if (warp_index() >= kMultipliers) {
      give_registers<kGivenRegisters>();
      copy_chunks({p, tile}, chunks, shared);
    } else {
      take_registers<kTakenRegisters>();
      attend(p, tile, chunks, shared);
    }
  }

 private:
  using Place = RingPlace<Shape::kItems>;

  struct Range {
    int32_t first;
    int32_t end;
  };

  PL_DEVICE static void make_barriers(Shared& shared) {
    if (thread_index() == 0) {
      for (uint32_t i = 0; i < Shape::kItems; ++i) {
        init_barrier(shared.landed[i], kGroupThreads / kWarpLanes);
        init_barrier(shared.read[i], kMultipliers);
      }
      init_barrier(shared.has_queries, kMultipliers);
    }
    sync_threads();
  }

  PL_DEVICE static void copy_chunks(const GroupCopies<Stored, kBlocks>& copies, Range chunks,
                                    Shared& shared) {
    if constexpr (!Shape::kIsLong) {
      for (uint32_t i = 0; i < Shape::kItems; i += 2) copies.clear_rest(shared.items[i]);
    }
    if constexpr (kHasScales<Stored>) {
      expand_chunks(copies, chunks, shared);
    } else {
      copy_chunks_ahead(copies, chunks, shared);
    }
  }

  // Codes are made bfloat16, each item as soon as it has a place.
  PL_DEVICE static void expand_chunks(const GroupCopies<Stored, kBlocks>& copies, Range chunks,
                                      Shared& shared) {
    Place next;
    PL_ROLLED
    for (int32_t item = 2 * chunks.first; item < 2 * chunks.end; ++item) {
      wait_barrier(shared.read[next.slot], next.parity ^ 1);  // the first round waits for nothing
      if (item % 2 == 0) {
        copies.expand_keys(item / 2, shared.items[next.slot]);
        copies.copy_scales(copies.p.kv.key_scales, item / 2, shared.scales[next.slot]);
      } else {
        copies.expand_values(item / 2, shared.items[next.slot]);
        copies.copy_scales(copies.p.kv.value_scales, item / 2, shared.scales[next.slot]);
      }
      publish(shared, next);
    }
  }

  // Some items are under way behind the one that is begun.
  PL_DEVICE static void copy_chunks_ahead(const GroupCopies<Stored, kBlocks>& copies, Range chunks,
                                          Shared& shared) {
    Place next, oldest;
    uint32_t under_way = 0;
    PL_ROLLED
    for (int32_t item = 2 * chunks.first; item < 2 * chunks.end; ++item, next.advance()) {
      wait_barrier(shared.read[next.slot], next.parity ^ 1);  // the first round waits for nothing
      if (item % 2 == 0) {
        copies.copy_keys(item / 2, shared.items[next.slot]);
      } else {
        copies.copy_values(item / 2, shared.items[next.slot]);
      }
      commit_copies();
      if (under_way < Shape::kUnderWay) {
        ++under_way;
      } else {
        wait_copies<Shape::kUnderWay>();
        publish(shared, oldest);
      }
    }
    wait_copies();
    for (; under_way > 0; --under_way) publish(shared, oldest);
  }
  PL_DEVICE static void publish(Shared& shared, Place& oldest) {
    publish_to_products();
    arrive_as_warp(shared.landed[oldest.slot]);
    oldest.advance();
  }

  // The chunks that any row of the warpgroup sees; none without rows.
  PL_DEVICE static Range seen_chunks(const Params& p, const TiledRows& tile) {
    const auto first_row = static_cast<int32_t>(GroupRows<Stored, kBlocks>::first_row());
    if (first_row >= tile.count) return {0, 0};
    const int32_t end_row = first_row + static_cast<int32_t>(kGroupRows);
    const int32_t last_row = (end_row < tile.count ? end_row : tile.count) - 1;
    const auto first = static_cast<int32_t>(p.rows[tile.row(p, first_row)].first);
    const auto end = static_cast<int32_t>(p.rows[tile.row(p, last_row)].end);
    return {first / kTiledKeys, (end + kTiledKeys - 1) / kTiledKeys};
  }

  PL_DEVICE static void attend(const Params& p, const TiledRows& tile, Range chunks,
                               Shared& shared) {
    GroupRows<Stored, kBlocks> rows(p, tile, shared);
    const Range seen = seen_chunks(p, tile);
    Place place;
    PL_ROLLED
    for (int32_t chunk = chunks.first; chunk < chunks.end; ++chunk) {
      if (chunk < seen.first || chunk >= seen.end) {
        // Only the other warpgroup sees it. Each has at most one such chunk, at an end of the
        // range, so no slot is released twice before its next item.
        release(shared, place);
        release(shared, place);
        continue;
      }
      GroupScores scores;
      wait_barrier(shared.landed[place.slot], place.parity);
      rows.multiply_keys(shared.items[place.slot], scores);
      if constexpr (kHasScales<Stored>) rows.scale_scores(shared.scales[place.slot], scores);
      release(shared, place);
      typename GroupRows<Stored, kBlocks>::Weights weights;
      MergeShares shares[2];
      if constexpr (kHasScales<Stored>) {
        wait_barrier(shared.landed[place.slot], place.parity);  // the values' scales are there
        rows.weigh(chunk, shared.scales[place.slot], scores, weights, shares);
      } else {
        rows.weigh(chunk, nullptr, scores, weights, shares);
        wait_barrier(shared.landed[place.slot], place.parity);
      }
      rows.add_values(chunk, shared.items[place.slot], weights, shares);
      release(shared, place);
    }
    PL_UNROLL
    for (int row = 0; row < 2; ++row) rows.write(row);
  }

  PL_DEVICE static void release(Shared& shared, Place& place) {
    arrive_as_warp(shared.read[place.slot]);
    place.advance();
  }
};

}  // namespace paceline::cuda
