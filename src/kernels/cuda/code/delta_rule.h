// The gated delta rule by chunks (RecurrentOps::delta_rule of kernels/recurrent.h): slices along x
// of the grid, along y each value head's columns, a lane for each. A block's warps divide the
// elements of a key among them, so every sum has one order, whatever rows a slice has. The columns'
// state stays in registers from a slice's first chunk to its last.
#pragma once

#include "kernels/cuda/code/math.h"
#include "kernels/cuda/code/panel_products.h"
#include "kernels/cuda/code/rows.h"
#include "kernels/cuda/code/state_rows.h"

namespace paceline::cuda {

constexpr int kDeltaWarps = 8;
constexpr int kDeltaColumns = kWarpLanes;
constexpr int kMostDeltaKeys = 256;  // elements of a key
constexpr int kFewDeltaKeys = 128;   // more of them need twice the registers
constexpr uint32_t kDotLanes = 8;    // of a product of two rows
constexpr int kFloatsAtOnce = 4;

// Names as in DeltaShape and DeltaInputs.
struct DeltaParams {
  StateBlocks states;
  Heads q;
  Heads k;
  Heads v;
  Heads out;
  ConstRows log_decay;
  ConstRows beta;
  const float* skip = nullptr;  // may be null
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t padded_key = 0;
  int64_t padded_value = 0;
  int64_t updates_begin = 0;
  int64_t decays_begin = 0;
  bool corrects = false;

  // Of a block of open rows.
  PL_DEVICE float* kept_key(float* block, int64_t row, int64_t key_head) const {
    return block + (row * key_heads + key_head) * padded_key;
  }
  PL_DEVICE float* kept_update(float* block, int64_t row, int64_t head) const {
    return block + updates_begin + (row * value_heads + head) * padded_value;
  }
  PL_DEVICE float* kept_decay(float* block, int64_t row, int64_t head) const {
    return block + decays_begin + row * value_heads + head;
  }
  // The sum of log decays from the start of `position`'s chunk to it. The slice has those of
  // positions from `first` on, its open rows those before.
  PL_DEVICE float decay_sum(const StateRows& rows, int64_t head, int64_t first,
                            int64_t position) const {
    const int64_t before = first - chunk_start(first);
    float sum =
        before > 0 ? *kept_decay(states.open_rows(rows.open_block), before - 1, head) : 0.0f;
    for (int64_t p = first; p <= position; ++p) {
      sum = log_decay.row(rows.row_of(p))[head] + sum;
    }
    return sum;
  }
};

// A key, as each of the warps has it: `kElements` elements, of which element e is that of dimension
// warp + kDeltaWarps * e; 0 where the key has none. With the padding, lanes that read or write
// parts of one key, or a dimension each, have banks of their own.
template <int kElements>
struct alignas(16) DeltaKey {
  static constexpr int kStride = kElements + kFloatsAtOnce;
  float parts[kDeltaWarps * kStride];

  PL_DEVICE Floats4 load(uint32_t part, int quad) const {
    return load_as<Floats4>(parts + part * kStride + kFloatsAtOnce * quad);
  }
  PL_DEVICE float& at(uint32_t dimension) {
    return parts[dimension % kDeltaWarps * kStride + dimension / kDeltaWarps];
  }
};

// Of a chunk.
template <int kElements>
struct DeltaRows {
  DeltaKey<kElements> keys[kChunkRows];
  DeltaKey<kElements> queries[kChunkRows];
  float partial[kDeltaWarps][2 * kChunkRows][kDeltaColumns];  // of the state times keys, queries
  float values[kChunkRows][kDeltaColumns];
  float updates[kChunkRows][kDeltaColumns];
  // Of the updates of rows before, decayed: [row before][row] of keys, [row][row before] of
  // queries.
  float key_weights[kChunkRows][kChunkRows];
  float query_weights[kChunkRows][kChunkRows];
  float decay_sums[kChunkRows];
  float since_start[kChunkRows];  // decays from the chunk's start to a row
  float to_end[kChunkRows];       // and from a row to the chunk's last
  float beta[kChunkRows];
};

// Rows [first, last) of the chunk that begins at `start`.
struct DeltaSpan {
  int64_t start = 0;
  int first = 0;
  int last = 0;

  PL_DEVICE bool has_state() const { return start > 0; }
  PL_DEVICE bool ends_chunk() const { return last == kChunkRows; }
  PL_DEVICE bool has(int row) const { return first <= row && row < last; }
  PL_DEVICE bool has_of(int begin, int end) const { return begin < last && first < end; }
};

// Columns of one value head of one slice.
template <int kElements>
class DeltaHeadPart {
 public:
  PL_DEVICE DeltaHeadPart(const DeltaParams& params, DeltaRows<kElements>& shared)
      : p_(params), s_(shared), rows_(params.states.slices[block_index().x]) {
    const auto parts = static_cast<uint32_t>((p_.value_dim + kDeltaColumns - 1) / kDeltaColumns);
    head_ = static_cast<int32_t>(block_index().y / parts);
    key_head_ = head_ / static_cast<int32_t>(p_.value_heads / p_.key_heads);
    column_ = static_cast<int32_t>(block_index().y % parts * kDeltaColumns + lane_index());
    has_column_ = column_ < p_.value_dim;
    state_block_ = p_.states.state(rows_.block);
    open_ = p_.states.open_rows(rows_.open_block);
    key_quads_ = static_cast<int>((p_.key_dim + kKeyQuad - 1) / kKeyQuad);
  }

  PL_DEVICE void run() {
    if (rows_.num_rows == 0) return clear();
    DeltaSpan span = span_at(rows_.first_position);
    load_state(span);
    fetch(span);
    for (;;) {
      place(span);
      sync_threads();
      const int64_t next = span.start + span.last;
      const bool is_last = next >= rows_.end();
      if (warp_index() < kDotWarps) weigh_rows(span);
      if (warp_index() == kDotWarps) weigh_ends(span);
      // What follows hides it; before, there are not enough registers.
      if (!is_last) fetch(span_at(next));
      if (span.has_state()) recall(span);
      sync_threads();
      if (warp_index() == 0) update(span);
      sync_threads();
      write_outputs(span);
      if (span.ends_chunk()) close(span);
      if (is_last) break;
      span = span_at(next);
      sync_threads();  // the rows of the chunk before have been read
    }
    if (chunk_start(rows_.end()) > chunk_start(rows_.first_position)) store_state(state_block_);
    if (rows_.num_rows == 1 && !span.ends_chunk()) keep_row(span);
  }

 private:
  static constexpr int kQuads = kElements / kFloatsAtOnce;
  static constexpr int kKeyQuad = kFloatsAtOnce * kDeltaWarps;  // dimensions of a quad of each warp
  static constexpr int kRowsEach = kChunkRows / kDeltaWarps;    // rows that a warp loads and writes
  // Pairs of rows are multiplied in tiles, by kDotLanes lanes each.
  static constexpr int kDotTile = 4;
  static constexpr int kDotPairs = kDotTile * kDotTile;
  static constexpr int kDotTiles = kChunkRows / kDotTile;  // of rows, and of rows before
  static constexpr uint32_t kDotWarps = kDotTiles * kDotTiles * kDotLanes / kWarpLanes;
  static constexpr int kPairsEach = kDotPairs / kDotLanes;
  static constexpr int kRecalledRows = 2;  // at once

  PL_DEVICE void clear() {
    if (warp_index() == 0 && has_column_) p_.out.head(rows_.first_row, head_)[column_] = 0.0f;
  }

  PL_DEVICE DeltaSpan span_at(int64_t begin) const {
    const int64_t start = chunk_start(begin), chunk_end = start + kStateChunk;
    const int64_t end = rows_.end() < chunk_end ? rows_.end() : chunk_end;
    return {start, static_cast<int>(begin - start), static_cast<int>(end - start)};
  }
  PL_DEVICE int64_t row_of(const DeltaSpan& span, int row) const {
    return rows_.row_of(span.start + row);
  }
  // The dimension of this warp's element of a key.
  PL_DEVICE int64_t dimension(int element) const { return warp_index() + kDeltaWarps * element; }

  // Of this thread's column.
  PL_DEVICE float* state_in(float* block) const {
    return block + head_ * p_.key_dim * p_.padded_value + column_;
  }
  PL_DEVICE void load_state(const DeltaSpan& span) {
    const float* const state = state_in(state_block_);
    PL_UNROLL
    for (int e = 0; e < kElements; ++e) {
      const bool is_there = span.has_state() && has_column_ && dimension(e) < p_.key_dim;
      state_[e] = is_there ? state[dimension(e) * p_.padded_value] : 0.0f;
    }
  }
  PL_DEVICE void store_state(float* block) const {
    if (!has_column_) return;
    float* const state = state_in(block);
    PL_UNROLL
    for (int e = 0; e < kElements; ++e) {
      if (dimension(e) < p_.key_dim) state[dimension(e) * p_.padded_value] = state_[e];
    }
  }

  // Begins to load keys of all rows so far, queries and values of those of the slice.
  PL_DEVICE void fetch(const DeltaSpan& span) {
    PL_UNROLL
    for (int i = 0; i < kRowsEach; ++i) {
      const int row = static_cast<int>(warp_index()) + i * kDeltaWarps;
      const bool is_own = span.has(row), is_kept = row < span.first;
      const float* const key =
          is_own ? p_.k.head(row_of(span, row), key_head_) : p_.kept_key(open_, row, key_head_);
      const float* const query = is_own ? p_.q.head(row_of(span, row), key_head_) : nullptr;
      PL_UNROLL
      for (int j = 0; j < kQuads; ++j) {
        const int64_t d = int64_t{lane_index()} + j * kKeyQuad;
        const bool is_there = d < p_.key_dim;
        keys_[i][j] = is_there && (is_own || is_kept) ? key[d] : 0.0f;
        queries_[i][j] = is_there && is_own ? query[d] : 0.0f;
      }
      values_[i] = is_own && has_column_ ? p_.v.head(row_of(span, row), head_)[column_] : 0.0f;
    }
    const bool has_gates = warp_index() == 0 && span.has(static_cast<int>(lane_index()));
    const int64_t row = has_gates ? row_of(span, static_cast<int>(lane_index())) : 0;
    log_decay_ = has_gates ? p_.log_decay.row(row)[head_] : 0.0f;
    beta_ = has_gates ? p_.beta.row(row)[head_] : 0.0f;
  }

  // Stores what was fetched where all threads read it, with gates and the updates of rows before.
  PL_DEVICE void place(const DeltaSpan& span) {
    PL_UNROLL
    for (int i = 0; i < kRowsEach; ++i) {
      const int row = static_cast<int>(warp_index()) + i * kDeltaWarps;
      PL_UNROLL
      for (int j = 0; j < kQuads; ++j) {
        if (j >= key_quads_) break;
        const uint32_t d = lane_index() + j * kKeyQuad;
        s_.keys[row].at(d) = keys_[i][j];
        s_.queries[row].at(d) = queries_[i][j];
      }
      s_.values[row][lane_index()] = values_[i];
      if (row < span.first && has_column_) {
        s_.updates[row][lane_index()] = p_.kept_update(open_, row, head_)[column_];
      }
    }
    if (warp_index() == 0) place_gates(span);
  }

  // By one warp, a lane for each row. Sums are added row by row.
  PL_DEVICE void place_gates(const DeltaSpan& span) {
    const auto row = static_cast<int>(lane_index());
    float sum = span.first > 0 ? *p_.kept_decay(open_, span.first - 1, head_) : 0.0f;
    PL_UNROLL
    for (int j = 0; j < kChunkRows; ++j) {
      const float log_decay = shuffle(log_decay_, static_cast<uint32_t>(j));
      if (span.first <= j && j <= row) sum = log_decay + sum;
    }
    if (row >= kChunkRows) return;
    s_.decay_sums[row] = row < span.first ? *p_.kept_decay(open_, row, head_) : sum;
    s_.beta[row] = beta_;
  }
  PL_DEVICE void weigh_ends(const DeltaSpan& span) {
    const auto row = static_cast<int>(lane_index());
    if (row >= span.last) return;
    s_.since_start[row] = exponential(s_.decay_sums[row]);
    s_.to_end[row] = exponential(s_.decay_sums[span.last - 1] - s_.decay_sums[row]);
  }

  // A tile of rows and of rows before: each lane adds its dimensions' products, then lanes exchange
  // halves of the pairs until each has the sums of kPairsEach of them.
  PL_DEVICE void weigh_rows(const DeltaSpan& span) {
    const uint32_t lane = thread_index() % kDotLanes;
    const int row = static_cast<int>(warp_index()) * kDotTile;
    const int before = static_cast<int>(lane_index() / kDotLanes) * kDotTile;
    if (!span.has_of(row, row + kDotTile)) return;  // as the whole warp
    float of_keys[kPairsEach], of_queries[kPairsEach];
    multiply_tile(s_.keys, row, before, of_keys);
    multiply_tile(s_.queries, row, before, of_queries);
    PL_UNROLL
    for (int k = 0; k < kPairsEach; ++k) {
      const int pair = static_cast<int>(lane) * kPairsEach + k;
      const int r = row + pair / kDotTile, b = before + pair % kDotTile;
      if (b > r || !span.has(r)) continue;
      const float decay = exponential(s_.decay_sums[r] - s_.decay_sums[b]);
      s_.key_weights[b][r] = decay * of_keys[k];
      s_.query_weights[r][b] = decay * of_queries[k];
    }
  }
  // Of keys or of queries: one kind at a time, for want of registers.
  PL_DEVICE void multiply_tile(const DeltaKey<kElements>* rows, int row, int before,
                               float (&of_lane)[kPairsEach]) const {
    const uint32_t part = thread_index() % kDotLanes;
    static_assert(kDotLanes == kDeltaWarps);  // so a part is a lane's
    float sums[kDotPairs] = {};
    if (before <= row) {
      PL_ROLLED
      for (int quad = 0; quad < key_quads_; ++quad) {
        Floats4 keys_before[kDotTile];
        PL_UNROLL
        for (int b = 0; b < kDotTile; ++b) keys_before[b] = s_.keys[before + b].load(part, quad);
        PL_UNROLL
        for (int r = 0; r < kDotTile; ++r) {
          const Floats4 elements = rows[row + r].load(part, quad);
          PL_UNROLL
          for (int b = 0; b < kDotTile; ++b) {
            float& sum = sums[r * kDotTile + b];
            PL_UNROLL
            for (int e = 0; e < kFloatsAtOnce; ++e) {
              sum = fused_multiply_add(keys_before[b].of[e], elements.of[e], sum);
            }
          }
        }
      }
    }
    add_over_lanes(part, sums);
    PL_UNROLL
    for (int k = 0; k < kPairsEach; ++k) of_lane[k] = sums[k];
  }
  // Lane l comes to have the sums of pairs kPairsEach * l and following in front.
  PL_DEVICE static void add_over_lanes(uint32_t lane, float (&sums)[kDotPairs]) {
    exchange<kDotPairs / 2>(lane, sums);
    exchange<kDotPairs / 4>(lane, sums);
    exchange<kDotPairs / 8>(lane, sums);
    static_assert(kPairsEach == kDotPairs / 8);
  }
  template <int kHalf>
  PL_DEVICE static void exchange(uint32_t lane, float (&sums)[kDotPairs]) {
    constexpr uint32_t kDistance = kHalf / kPairsEach;
    const bool is_upper = (lane & kDistance) != 0;
    PL_UNROLL
    for (int k = 0; k < kHalf; ++k) {
      const float own = is_upper ? sums[k + kHalf] : sums[k];
      const float others = is_upper ? sums[k] : sums[k + kHalf];
      sums[k] = own + shuffle_xor(others, kDistance);
    }
  }

  // The state's elements of this warp times keys and queries. Rows outside of the span get numbers
  // that nobody reads.
  PL_DEVICE void recall(const DeltaSpan& span) {
    const uint32_t warp = warp_index(), lane = lane_index();
    PL_ROLLED
    for (int first = 0; first < kChunkRows; first += kRecalledRows) {
      if (!span.has_of(first, first + kRecalledRows)) continue;
      float of_keys[kRecalledRows] = {}, of_queries[kRecalledRows] = {};
      PL_UNROLL
      for (int quad = 0; quad < kQuads; ++quad) {
        if (quad >= key_quads_) break;
        PL_UNROLL
        for (int r = 0; r < kRecalledRows; ++r) {
          const Floats4 key = s_.keys[first + r].load(warp, quad);
          const Floats4 query = s_.queries[first + r].load(warp, quad);
          PL_UNROLL
          for (int e = 0; e < kFloatsAtOnce; ++e) {
            const float element = state_[quad * kFloatsAtOnce + e];
            of_keys[r] = fused_multiply_add(key.of[e], element, of_keys[r]);
            of_queries[r] = fused_multiply_add(query.of[e], element, of_queries[r]);
          }
        }
      }
      PL_UNROLL
      for (int r = 0; r < kRecalledRows; ++r) {
        s_.partial[warp][first + r][lane] = of_keys[r];
        s_.partial[warp][kChunkRows + first + r][lane] = of_queries[r];
      }
    }
  }
  // What the state has for a row's key, or behind those for its query.
  PL_DEVICE float recalled(int row) const {
    float total = s_.partial[0][row][lane_index()];
    PL_UNROLL
    for (int w = 1; w < kDeltaWarps; ++w) total = total + s_.partial[w][row][lane_index()];
    return total;
  }

  // By one warp: a row's update needs those before it. Each is taken off all rows behind it.
  PL_DEVICE void update(const DeltaSpan& span) {
    const uint32_t lane = lane_index();
    float updates[kChunkRows];
    PL_UNROLL
    for (int row = 0; row < kChunkRows; ++row) {
      if (!span.has(row)) continue;
      updates[row] = s_.values[row][lane];
      if (!p_.corrects || !span.has_state()) continue;
      updates[row] = fused_multiply_add(-s_.since_start[row], recalled(row), updates[row]);
    }
    PL_UNROLL
    for (int j = 0; j < kChunkRows; ++j) {
      if (j >= span.last) break;
      float update = 0.0f;
      if (j < span.first) {
        update = s_.updates[j][lane];
      } else {
        update = s_.beta[j] * updates[j];
        s_.updates[j][lane] = update;
        if (!span.ends_chunk() && has_column_) {
          p_.kept_update(open_, j, head_)[column_] = update;
        }
      }
      if (!p_.corrects) continue;
      PL_UNROLL
      for (int row = j + 1; row < kChunkRows; ++row) {
        if (!span.has(row)) continue;
        updates[row] = fused_multiply_add(-s_.key_weights[j][row], update, updates[row]);
      }
    }
  }

  PL_DEVICE void write_outputs(const DeltaSpan& span) {
    const uint32_t lane = lane_index();
    PL_UNROLL
    for (int i = 0; i < kRowsEach; ++i) {
      const int row = static_cast<int>(warp_index()) + i * kDeltaWarps;
      if (!span.has(row)) continue;
      float sum = 0.0f;
      if (span.has_state()) sum = s_.since_start[row] * recalled(kChunkRows + row);
      PL_UNROLL
      for (int j = 0; j < kChunkRows; ++j) {
        if (j > row) break;
        sum = fused_multiply_add(s_.query_weights[row][j], s_.updates[j][lane], sum);
      }
      if (p_.skip != nullptr) {
        sum = fused_multiply_add(p_.skip[head_], s_.values[row][lane], sum);
      }
      if (has_column_) p_.out.head(row_of(span, row), head_)[column_] = sum;
    }
  }

  // The state after the chunk.
  PL_DEVICE void close(const DeltaSpan& span) {
    const float decay = s_.since_start[kChunkRows - 1];
    PL_UNROLL
    for (int e = 0; e < kElements; ++e) state_[e] = span.has_state() ? decay * state_[e] : 0.0f;
    PL_ROLLED
    for (int j = 0; j < kChunkRows; ++j) {
      const float update = s_.to_end[j] * s_.updates[j][lane_index()];
      PL_UNROLL
      for (int quad = 0; quad < kQuads; ++quad) {
        if (quad >= key_quads_) break;
        const Floats4 key = s_.keys[j].load(warp_index(), quad);
        PL_UNROLL
        for (int e = 0; e < kFloatsAtOnce; ++e) {
          float& element = state_[quad * kFloatsAtOnce + e];
          element = fused_multiply_add(key.of[e], update, element);
        }
      }
    }
    save(span.start + kStateChunk);
  }
  PL_DEVICE void save(int64_t position) const {
    for (int32_t i = 0; i < rows_.num_saves; ++i) {
      const SavePoint save = p_.states.saves[rows_.first_save + i];
      if (save.position == position) store_state(p_.states.state(save.block));
    }
  }

  // Of a slice of one row. Other blocks read rows before it alone.
  PL_DEVICE void keep_row(const DeltaSpan& span) {
    const int row = span.first;
    if (column_ >= kDeltaColumns || static_cast<int>(warp_index()) != row % kDeltaWarps) return;
    if (lane_index() == 0) *p_.kept_decay(open_, row, head_) = s_.decay_sums[row];
    if (head_ % (p_.value_heads / p_.key_heads) != 0) return;
    float* const key = p_.kept_key(open_, row, key_head_);
    PL_UNROLL
    for (int j = 0; j < kQuads; ++j) {
      const int64_t d = int64_t{lane_index()} + j * kKeyQuad;
      if (d < p_.key_dim) key[d] = s_.keys[row].at(static_cast<uint32_t>(d));
    }
  }

  const DeltaParams& p_;
  DeltaRows<kElements>& s_;
  StateRows rows_;
  int32_t head_;
  int32_t key_head_;
  int32_t column_;
  bool has_column_;
  float* state_block_;
  float* open_;
  int key_quads_;  // of each warp
  float state_[kElements];
  // Of the next chunk, as this thread loads them.
  float keys_[kRowsEach][kQuads];
  float queries_[kRowsEach][kQuads];
  float values_[kRowsEach];
  float log_decay_, beta_;  // of the first warp's lanes, a row each
};

template <int kElements>
struct DeltaRuleOf {
  static constexpr uint32_t kThreads = kDeltaWarps * kWarpLanes;
  using Params = DeltaParams;
  using Shared = DeltaRows<kElements>;

  PL_DEVICE static void run(const Params& params, Shared& shared) {
    DeltaHeadPart<kElements>(params, shared).run();
  }
};
struct DeltaRule : DeltaRuleOf<kFewDeltaKeys / kDeltaWarps> {
  static constexpr std::string_view kName = "delta_rule";
  static constexpr uint32_t kBlocksAtOnce = 2;  // of a multiprocessor
};
struct DeltaRuleOfLongKeys : DeltaRuleOf<kMostDeltaKeys / kDeltaWarps> {
  static constexpr std::string_view kName = "delta_rule_of_long_keys";
};

// Writes keys and decays of the chunks that slices of several rows leave open, their rows along y
// of the grid. Blocks of DeltaRule read the rows kept before, so it overwrites none.
struct KeepDeltaRows {
  static constexpr std::string_view kName = "keep_delta_rows";
  static constexpr uint32_t kThreads = 256;
  using Params = DeltaParams;
  struct Shared {};

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const StateRows rows = p.states.slices[block_index().x];
    const int64_t row = block_index().y, position = chunk_start(rows.end()) + row;
    if (rows.num_rows <= 1 || position < rows.first_position || position >= rows.end()) return;
    float* const block = p.states.open_rows(rows.open_block);
    const auto dims = static_cast<uint32_t>(p.key_dim);
    const uint32_t elements = static_cast<uint32_t>(p.key_heads) * dims;
    for (uint32_t i = thread_index(); i < elements; i += kThreads) {
      const uint32_t head = i / dims, d = i % dims;
      p.kept_key(block, row, head)[d] = p.k.head(rows.row_of(position), head)[d];
    }
    for (int64_t head = thread_index(); head < p.value_heads; head += kThreads) {
      *p.kept_decay(block, row, head) = p.decay_sum(rows, head, rows.first_kept(), position);
    }
  }
};

}  // namespace paceline::cuda
