// Attention over keys and values in bfloat16, where the instruction set has tile registers. Queries
// and weights are sums of bfloat16 numbers (kParts), so products have the precision of float32. One
// order of sums for any number of rows: that of tile_blocks.h, where each 32 values of K meet the
// parts in turn, the smallest first.
#include "kernels/cpu/isa_kernels.h"

#if defined(PACELINE_ISA_AMX)

#include "kernels/cpu/attention_walk.h"
#include "kernels/cpu/attention_weights.h"
#include "kernels/cpu/tile_registers.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// The mantissa of a float32 has 24 bits, three times that of a bfloat16.
constexpr int kParts = 3;
// Pairs that are attended together: two tile registers.
constexpr int64_t kBlockPairs = 2 * kTileRows;
// Pairs whose weights are made between steps in tiles: about as long as a step takes.
constexpr int64_t kPairsAtOnce = 4;
constexpr auto kHalfBytes = static_cast<int64_t>(sizeof(Bf16));

// Fewer pairs fill one register in part; more fill whole ones.
PL_INLINE int64_t rows_of_tiles(const AttentionTask& task) {
  return min_of(num_pairs(task), kTileRows);
}
// Zeros follow the elements of a head up to this width.
PL_INLINE int64_t query_width(const AttentionTask& task) {
  return round_up(task.head_dim, kStepDepth);
}

// The upper halves of two vectors: element i of `first` beside that of `second`. Truncates both to
// bfloat16.
PL_INLINE Uints upper_halves(Vec first, Vec second) {
  return (as_bits(first) >> 16) | (as_bits(second) & 0xFFFF0000u);
}
PL_INLINE Vec behind_upper_half(Vec value) {
  return value - as_floats(as_bits(value) & 0xFFFF0000u);
}

// Writes a step of K, its first 16 values beside the others, as kParts parts that lie `stride`
// elements apart. The last one is exact as well: three times 8 bits are all of a float32.
PL_INLINE void store_parts(Bf16* to, int64_t stride, Vec first, Vec second) {
#pragma GCC unroll 3
  for (int part = 0; part < kParts; ++part) {
    const Uints halves = upper_halves(first, second);
    __builtin_memcpy(to + part * stride, &halves, sizeof(halves));
    if (part + 1 == kParts) break;
    first = behind_upper_half(first);
    second = behind_upper_half(second);
  }
}

// out[m][n] = sum over K, part of a: a[m][part][k] b[k][n], where b has pairs of K side by side:
// in each step of 32 values the first 16 beside the others.
struct PartsProduct {
  const Bf16* a;
  int64_t a_stride;  // elements
  int64_t part_stride;
  const Bf16* b;
  int64_t b_stride;  // from a pair of K to the next
  int64_t depth;     // a multiple of kStepDepth
  float* out;
  int64_t out_stride;
};

// Adds one step of K to the sums of up to 32 rows by up to 32 columns, in tiles 0 to 3.
template <int kRowTiles, int kColumnTiles>
void add_step(const PartsProduct& product, int64_t step) {
  const int64_t a_bytes = product.a_stride * kHalfBytes, b_bytes = product.b_stride * kHalfBytes;
  const Bf16* const a = product.a + step * kStepDepth;
  const Bf16* const b = product.b + step * (kStepDepth / 2) * product.b_stride;
  if (step == 0) {
    zero_tile<0>();
    if constexpr (kColumnTiles == 2) zero_tile<1>();
    if constexpr (kRowTiles == 2) zero_tile<2>();
    if constexpr (kRowTiles == 2 && kColumnTiles == 2) zero_tile<3>();
  }
  _tile_loadd(6, b, b_bytes);
  if constexpr (kColumnTiles == 2) _tile_loadd(7, b + 2 * kTileColumns, b_bytes);
#pragma GCC unroll 3
  for (int part = kParts - 1; part >= 0; --part) {
    const Bf16* const upper = a + part * product.part_stride;
    _tile_loadd(4, upper, a_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kColumnTiles == 2) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kRowTiles == 2) {
      _tile_loadd(5, upper + kTileRows * product.a_stride, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kColumnTiles == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  if ((step + 1) * kStepDepth < product.depth) return;
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t out_bytes = product.out_stride * kFloat;
  float* const lower = product.out + kTileRows * product.out_stride;
  _tile_stored(0, product.out, out_bytes);
  if constexpr (kColumnTiles == 2) _tile_stored(1, product.out + kTileColumns, out_bytes);
  if constexpr (kRowTiles == 2) _tile_stored(2, lower, out_bytes);
  if constexpr (kRowTiles == 2 && kColumnTiles == 2) {
    _tile_stored(3, lower + kTileColumns, out_bytes);
  }
}

// A product of one or two tiles of rows with any number of columns, a multiple of 16, that is
// computed step by step: other work goes on between steps, in other registers.
class TileWork {
 public:
  TileWork() = default;
  TileWork(const PartsProduct& product, int64_t row_tiles, int64_t num_columns)
      : product_(product), row_tiles_(row_tiles), num_columns_(num_columns) {}

  int64_t steps_left() const {
    if (num_columns_ == 0) return 0;
    return round_up(num_columns_, 2 * kTileColumns) / (2 * kTileColumns) *
               (product_.depth / kStepDepth) -
           step_;
  }

  void do_step() {
    finish_stores();
    const bool is_wide = num_columns_ >= 2 * kTileColumns;
    if (row_tiles_ == 2) {
      is_wide ? add_step<2, 2>(product_, step_) : add_step<2, 1>(product_, step_);
    } else {
      is_wide ? add_step<1, 2>(product_, step_) : add_step<1, 1>(product_, step_);
    }
    if (++step_ * kStepDepth < product_.depth) return;
    step_ = 0;
    num_columns_ = max_of(num_columns_ - 2 * kTileColumns, 0);
    product_.b += 4 * kTileColumns;
    product_.out += 2 * kTileColumns;
  }

  void finish() {
    while (steps_left() > 0) do_step();
  }

 private:
  PartsProduct product_{};
  int64_t row_tiles_ = 0;
  int64_t num_columns_ = 0;  // that are left
  int64_t step_ = 0;
};

// Lanes 0 to 15 of two rows side by side; `second` may be nullptr: zeros.
PL_INLINE Uints interleaved(const Bf16* first, const Bf16* second, __mmask16 lanes) {
  const auto widen = [lanes](const Bf16* from) {
    return (Uints)_mm512_maskz_cvtepu16_epi32(lanes, _mm256_maskz_loadu_epi16(lanes, from));
  };
  const Uints even = first != nullptr ? widen(first) : Uints{};
  const Uints odd = second != nullptr ? widen(second) : Uints{};
  return even | (odd << 16);
}

// Of two rows that have all lanes.
PL_INLINE Uints interleaved_whole(const Bf16* first, const Bf16* second) {
  Bf16s even, odd;
  __builtin_memcpy(&even, first, sizeof(even));
  __builtin_memcpy(&odd, second, sizeof(odd));
  return widen_bits(even) | (widen_bits(odd) << 16);
}

PL_INLINE __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1u << min_of(count, kLanes)) - 1u);
}

// Calls body(pair, k) for the pairs of K, values k and k + kLanes, of steps up to `depth`.
template <class Body>
PL_INLINE void for_each_pair_of_k(int64_t depth, Body&& body) {
  for (int64_t step = 0; step < depth; step += kStepDepth) {
    for (int64_t i = 0; i < kLanes; ++i) body(step / 2 + i, step + i);
  }
}

// to[pair of elements][key], of the chunk's keys; those of other keys stay as they are.
void pack_keys(const AttentionTask& task, int64_t kv_head, int64_t chunk, KeyRange keys, Bf16* to) {
  const int64_t head_dim = task.head_dim;
  const auto* const head = static_cast<const Bf16*>(task.keys) + kv_head * task.key_head_stride;
  for_each_run(task, chunk, keys, [&](const SlotRun& run) {
    const Bf16* const from = head + run.block * task.key_block_stride + run.offset;
    for (int64_t key = 0; key < run.count; key += kLanes) {
      const __mmask16 lanes = first_lanes(run.count - key);
      const bool is_whole = run.count - key >= kLanes && head_dim % kStepDepth == 0;
      Bf16* const column = to + 2 * (run.index + key);
      for_each_pair_of_k(query_width(task), [&](int64_t pair, int64_t d) {
        Bf16* const pairs_to = column + pair * 2 * kChunkLength;
        const Bf16* const first = from + d * task.block_size + key;
        const Bf16* const second = first + kLanes * task.block_size;
        if (is_whole) {
          const Uints pairs = interleaved_whole(first, second);
          __builtin_memcpy(pairs_to, &pairs, sizeof(pairs));
          return;
        }
        const Uints pairs = interleaved(d < head_dim ? first : nullptr,
                                        d + kLanes < head_dim ? second : nullptr, lanes);
        _mm512_mask_storeu_epi32(pairs_to, lanes, (__m512i)pairs);
      });
    }
  });
}

// to[pair of keys][element], of the chunk's values, with zeros for other keys up to a whole step.
// Returns whether all elements are finite.
bool pack_values(const AttentionTask& task, int64_t kv_head, int64_t chunk, KeyRange keys,
                 Bf16* to) {
  const int64_t head_dim = task.head_dim, padded = padded_head_dim(head_dim);
  const Bf16* rows[kChunkLength] = {};
  const auto* const head = static_cast<const Bf16*>(task.values) + kv_head * task.value_head_stride;
  for_each_run(task, chunk, keys, [&](const SlotRun& run) {
    const Bf16* const from = head + run.block * task.value_block_stride + run.offset * head_dim;
    for (int64_t i = 0; i < run.count; ++i) rows[run.index + i] = from + i * head_dim;
  });
  Uints largest = {};
  for_each_pair_of_k(round_up(keys.end, kStepDepth), [&](int64_t pair, int64_t key) {
    const Bf16* const first = rows[key];
    const Bf16* const second = rows[key + kLanes];
    const bool is_whole = first != nullptr && second != nullptr && padded == head_dim;
    for (int64_t d = 0; d < padded; d += kLanes) {
      const Uints pairs = is_whole ? interleaved_whole(first + d, second + d)
                                   : interleaved(first != nullptr ? first + d : nullptr,
                                                 second != nullptr ? second + d : nullptr,
                                                 first_lanes(head_dim - d));
      largest = (Uints)_mm512_max_epu16((__m512i)largest, (__m512i)(pairs & 0x7FFF7FFFu));
      __builtin_memcpy(to + 2 * (pair * padded + d), &pairs, sizeof(pairs));
    }
  });
  const __m512i infinity = _mm512_set1_epi16(0x7F80);
  return _mm512_cmpge_epu16_mask((__m512i)largest, infinity) == 0;
}

// The shape of tile registers while a task runs.
class TileSession {
 public:
  explicit TileSession(const AttentionTask& task) {
    const int64_t rows = rows_of_tiles(task);
    TileConfig config;
    for (int tile = 0; tile < 6; ++tile) config.set(tile, rows);
    config.set(6, kTileRows);
    config.set(7, kTileRows);
    config.use();
  }
  ~TileSession() { _tile_release(); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

// One thread's buffers; `queries` and `total` are a head's own.
struct HeadScratch {
  Bf16* keys;     // [query width / 2][kChunkLength][2]
  Bf16* values;   // [kChunkLength / 2][padded head_dim][2]
  Bf16* visible;  // a copy of `values`, with zeros for keys that a row doesn't see
  float* scores;  // of two blocks, [kBlockPairs][kChunkLength]
  Bf16* weights;  // of two blocks, [kBlockPairs][kParts][kChunkLength], and kTileRows more
  float* sums;    // [kBlockPairs][padded head_dim]
  Partial chunk;
  Bf16* queries;  // [pairs, rounded up to tiles][kParts][query width]
  Partial total;
  int64_t floats;  // of all heads

  HeadScratch(const AttentionTask& task, int64_t kv_head) {
    const int64_t pairs = num_pairs(task), padded = padded_head_dim(task.head_dim);
    auto* next = static_cast<float*>(task.scratch);
    const auto take = [&next](int64_t count) {
      float* const taken = next;
      next += round_up(count, kLanes);
      return taken;
    };
    const auto take_halves = [&](int64_t count) {
      return reinterpret_cast<Bf16*>(take(count / 2));
    };
    keys = take_halves(query_width(task) * kChunkLength);
    values = take_halves(padded * kChunkLength);
    visible = take_halves(padded * kChunkLength);
    scores = take(2 * kBlockPairs * kChunkLength);
    weights = take_halves((2 * kBlockPairs + kTileRows) * kParts * kChunkLength);
    sums = take(kBlockPairs * padded);
    const int64_t partial = partial_floats(task.head_dim, pairs);
    chunk = partial_at(take(partial), pairs);
    const int64_t query_halves = round_up(pairs, kTileRows) * kParts * query_width(task);
    float* const first_head = next;
    queries = take_halves(query_halves);
    total = partial_at(take(partial), pairs);
    const int64_t head_floats = next - first_head;
    queries += kv_head * head_floats * 2;
    total = partial_at(total.max + kv_head * head_floats, pairs);
    floats = first_head - static_cast<float*>(task.scratch) + task.num_kv_heads * head_floats;
  }
};

// One kv head of a task.
class TileHead {
 public:
  using Session = TileSession;

  TileHead(const AttentionTask& task, int64_t kv_head)
      : task_(task), kv_head_(kv_head), scratch_(task, kv_head) {}

  Partial chunk() const { return scratch_.chunk; }
  Partial total() const { return scratch_.total; }

  void copy_queries() const {
    const int64_t width = query_width(task_), head_dim = task_.head_dim;
    for_each_pair(task_, kv_head_, [&](int64_t pair, int64_t row, int64_t head) {
      const float* const from = task_.q + row * task_.q_row_stride + head * task_.q_head_stride;
      const auto lanes = [&](int64_t d) {
        return d < head_dim ? load_upto(from + d, min_of(head_dim - d, kLanes)) : Vec{};
      };
      Bf16* const to = scratch_.queries + pair * kParts * width;
      for (int64_t d = 0; d < width; d += 2 * kLanes) {
        store_parts(to + d, width, lanes(d), lanes(d + kLanes));
      }
    });
  }

  // While the weights of a block are made, tiles compute the values of the block before it and the
  // scores of the next one.
  void attend(int64_t chunk, const Partial& partial) const {
    const RowRange rows = rows_of_chunk(task_, chunk);
    const KeyRange keys = keys_of_rows(task_, chunk, rows);
    pack_keys(task_, kv_head_, chunk, keys, scratch_.keys);
    const bool is_finite = pack_values(task_, kv_head_, chunk, keys, scratch_.values);
    prefetch_part(next_part(task_, kv_head_, chunk));
    const int64_t num_keys = round_up(keys.end, kStepDepth);
    const PairRange pairs = {rows.begin * task_.group, rows.end * task_.group};
    const int64_t first = pairs.begin / kTileRows * kTileRows;
    score(block_at(first, pairs), num_keys).finish();
    Block before{};
    for (Block block = block_at(first, pairs); block.begin < block.end;
         block = block_at(block.first + kBlockPairs, pairs)) {
      const Block next = block_at(block.first + kBlockPairs, pairs);
      TileWork work[2];
      if (is_finite && before.begin < before.end) work[0] = weigh(before, num_keys, partial);
      if (next.begin < next.end) work[1] = score(next, num_keys);
      exponentiate(block, chunk, partial, work);
      if (is_finite) {
        copy_rest(before, partial);
      } else {
        weigh_row_by_row(block, chunk, partial);
      }
      before = block;
    }
    if (!is_finite) return;
    weigh(before, num_keys, partial).finish();
    copy_rest(before, partial);
  }

 private:
  void prefetch_part(const NextPart& next) const {
    prefetch_blocks(task_, next,
                    static_cast<const Bf16*>(task_.keys) + next.kv_head * task_.key_head_stride,
                    task_.key_block_stride);
    prefetch_blocks(task_, next,
                    static_cast<const Bf16*>(task_.values) + next.kv_head * task_.value_head_stride,
                    task_.value_block_stride);
  }

  // Pairs [begin, end) that see a chunk, in tiles from pair `first` on.
  struct Block {
    int64_t first = 0;
    int64_t begin = 0;
    int64_t end = 0;

    int64_t row_tiles() const { return end - first > kTileRows ? 2 : 1; }
    int64_t parity() const { return first / kBlockPairs % 2; }
  };
  static Block block_at(int64_t first, PairRange pairs) {
    return {first, max_of(first, pairs.begin), min_of(first + kBlockPairs, pairs.end)};
  }

  float* scores_of(const Block& block) const {
    return scratch_.scores + block.parity() * kBlockPairs * kChunkLength;
  }
  Bf16* weights_of(const Block& block) const {
    return scratch_.weights + block.parity() * kBlockPairs * kParts * kChunkLength;
  }

  TileWork score(const Block& block, int64_t num_keys) const {
    const int64_t width = query_width(task_);
    return {{.a = scratch_.queries + block.first * kParts * width,
             .a_stride = kParts * width,
             .part_stride = width,
             .b = scratch_.keys,
             .b_stride = 2 * kChunkLength,
             .depth = width,
             .out = scores_of(block),
             .out_stride = kChunkLength},
            block.row_tiles(),
            num_keys};
  }

  void exponentiate(const Block& block, int64_t chunk, const Partial& partial,
                    TileWork (&work)[2]) const {
    const int64_t num_steps = work[0].steps_left() + work[1].steps_left();
    int64_t done = 0;
    for (int64_t begin = block.begin; begin < block.end; begin += kPairsAtOnce) {
      const int64_t end = min_of(begin + kPairsAtOnce, block.end);
      exponentiate_pairs(block, begin, end, chunk, partial);
      while (done * (block.end - block.begin) < num_steps * (end - block.begin)) {
        work[work[0].steps_left() > 0 ? 0 : 1].do_step();
        ++done;
      }
    }
  }

  void exponentiate_pairs(const Block& block, int64_t begin, int64_t end, int64_t chunk,
                          const Partial& partial) const {
    static_assert(kChunkVectors == 4);
    float* const scores = scores_of(block) - block.first * kChunkLength;
    Bf16* const all = weights_of(block) - block.first * kParts * kChunkLength;
    int64_t row = begin / task_.group, end_of_row = (row + 1) * task_.group;
    KeyRange visible = visible_keys(task_, row, chunk);
    for (int64_t pair = begin; pair < end; ++pair) {
      if (pair == end_of_row) {
        visible = visible_keys(task_, ++row, chunk);
        end_of_row += task_.group;
      }
      if (task_.has_position_scores) {
        add_position_scores(task_, row, kv_head_ * task_.group + pair % task_.group, chunk, visible,
                            scores + pair * kChunkLength);
      }
      Vec weights[kChunkVectors];
      const MaxAndSum result = exponentials(task_, visible, scores + pair * kChunkLength, weights);
      partial.max[pair] = result.max;
      partial.sum[pair] = result.sum;
      Bf16* const to = all + pair * kParts * kChunkLength;
      store_parts(to, kChunkLength, weights[0], weights[1]);
      store_parts(to + kStepDepth, kChunkLength, weights[2], weights[3]);
    }
  }

  PartsProduct weighted(const Bf16* weights, const Bf16* values, int64_t num_keys,
                        float* out) const {
    const int64_t padded = padded_head_dim(task_.head_dim);
    return {.a = weights,
            .a_stride = kParts * kChunkLength,
            .part_stride = kChunkLength,
            .b = values,
            .b_stride = 2 * padded,
            .depth = num_keys,
            .out = out,
            .out_stride = padded};
  }

  // Whether the last tile of rows has more of them than there are pairs.
  bool has_rest(const Block& block) const {
    const int64_t pairs = num_pairs(task_);
    return pairs > kTileRows && block.first + block.row_tiles() * kTileRows > pairs;
  }

  // With a rest, all sums are kept apart at first.
  TileWork weigh(const Block& block, int64_t num_keys, const Partial& partial) const {
    const int64_t padded = padded_head_dim(task_.head_dim);
    float* const out = has_rest(block) ? scratch_.sums : partial.values + block.first * padded;
    return {weighted(weights_of(block), scratch_.values, num_keys, out), block.row_tiles(), padded};
  }

  void copy_rest(const Block& block, const Partial& partial) const {
    if (block.begin < block.end && has_rest(block)) {
      copy_sums(num_pairs(task_) - block.first,
                partial.values + block.first * padded_head_dim(task_.head_dim));
    }
  }

  void copy_sums(int64_t rows, float* to) const {
    const int64_t count = rows * padded_head_dim(task_.head_dim);
    for (int64_t i = 0; i < count; i += kLanes) store(to + i, load(scratch_.sums + i));
  }

  // Keys that a row doesn't see have the weight 0, but 0 times infinity isn't 0: their values are
  // taken away, row by row.
  void weigh_row_by_row(const Block& block, int64_t chunk, const Partial& partial) const {
    const int64_t padded = padded_head_dim(task_.head_dim);
    for (int64_t pair = block.begin; pair < block.end;) {
      const int64_t row = pair / task_.group;
      const int64_t end = min_of(block.end, (row + 1) * task_.group);
      const int64_t last = min_of(end, pair + rows_of_tiles(task_));
      const int64_t num_keys =
          copy_visible(visible_keys(task_, row, chunk), scratch_.values, scratch_.visible);
      const Bf16* const weights = weights_of(block) + (pair - block.first) * kParts * kChunkLength;
      TileWork(weighted(weights, scratch_.visible, num_keys, scratch_.sums), 1, padded).finish();
      copy_sums(last - pair, partial.values + pair * padded);
      pair = last;
    }
  }

  // Returns the number of keys, rounded up to a step.
  int64_t copy_visible(KeyRange keys, const Bf16* values, Bf16* to) const {
    const int64_t padded = padded_head_dim(task_.head_dim);
    const int64_t num_keys = round_up(keys.end, kStepDepth);
    const auto is_seen = [keys](int64_t key) { return key >= keys.begin && key < keys.end; };
    for_each_pair_of_k(num_keys, [&](int64_t pair, int64_t key) {
      const uint32_t first = is_seen(key) ? 0xFFFFu : 0u;
      const uint32_t mask = is_seen(key + kLanes) ? first | 0xFFFF0000u : first;
      for (int64_t d = 0; d < padded; d += kLanes) {
        const Uints pairs = load_bits(values + 2 * (pair * padded + d)) & mask;
        __builtin_memcpy(to + 2 * (pair * padded + d), &pairs, sizeof(pairs));
      }
    });
    return num_keys;
  }

  const AttentionTask& task_;
  int64_t kv_head_;
  HeadScratch scratch_;
};

int64_t larger_scratch(const AttentionTask& task) {
  return max_of(scratch_floats(task), HeadScratch(task, 0).floats);
}

}  // namespace

void add_attention_tile_kernels(KernelTable& table) {
  table.attention_scratch = larger_scratch;
  table.attention[2] = attend_task<TileHead>;
  table.attention_chunks[2] = attend_chunks<TileHead>;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#else

namespace paceline::PACELINE_ISA_NAMESPACE {

void add_attention_tile_kernels(KernelTable&) {}

}  // namespace paceline::PACELINE_ISA_NAMESPACE

#endif
