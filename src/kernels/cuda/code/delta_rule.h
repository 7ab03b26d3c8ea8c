// The gated delta rule by chunks (RecurrentOps::delta_rule of kernels/recurrent.h): slices along x
// of the grid, along y each value head's columns, a lane for each. A block's warps divide the
// elements of a key among them, so every sum has one order, whatever rows a slice has.
#pragma once

#include "kernels/cuda/code/math.h"
#include "kernels/cuda/code/rows.h"
#include "kernels/cuda/code/state_rows.h"

namespace paceline::cuda {

constexpr int kDeltaWarps = 8;
constexpr int kDeltaColumns = kWarpLanes;
constexpr int kRecalledRows = kDeltaWarps / 2;  // at once, of keys and of queries
constexpr int kMostDeltaKeys = 256;             // elements of a key
constexpr uint32_t kDotLanes = 8;               // of a product of two rows

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

// Of a chunk. Without the padding the rows that a warp multiplies would stand in the same banks.
struct DeltaRows {
  float keys[kChunkRows][kMostDeltaKeys + kDotLanes];
  float queries[kChunkRows][kMostDeltaKeys + kDotLanes];
  float values[kChunkRows][kDeltaColumns];
  float updates[kChunkRows][kDeltaColumns];
  float known[kChunkRows][kDeltaColumns];  // what the state has for a row's key
  float read[kChunkRows][kDeltaColumns];   // and for its query
  float partial[kDeltaWarps][2 * kRecalledRows][kDeltaColumns];
  float key_weights[kChunkRows][kChunkRows];  // of the updates of rows before, decayed
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
};

// Columns of one value head of one slice.
class DeltaHeadPart {
 public:
  PL_DEVICE DeltaHeadPart(const DeltaParams& params, DeltaRows& shared)
      : p_(params), s_(shared), rows_(params.states.slices[block_index().x]) {
    const auto parts = static_cast<uint32_t>((p_.value_dim + kDeltaColumns - 1) / kDeltaColumns);
    head_ = block_index().y / parts;
    key_head_ = head_ / (p_.value_heads / p_.key_heads);
    column_ = int64_t{block_index().y % parts} * kDeltaColumns + lane_index();
    has_column_ = column_ < p_.value_dim;
    open_ = p_.states.open_rows(rows_.open_block);
  }

  PL_DEVICE void run() {
    if (rows_.num_rows == 0) return clear();
    for (int64_t begin = rows_.first_position; begin < rows_.end();) {
      const int64_t start = chunk_start(begin), chunk_end = start + kStateChunk;
      const int64_t end = rows_.end() < chunk_end ? rows_.end() : chunk_end;
      run_chunk({start, static_cast<int>(begin - start), static_cast<int>(end - start)});
      begin = end;
    }
  }

 private:
  PL_DEVICE void clear() {
    if (warp_index() == 0 && has_column_) p_.out.head(rows_.first_row, head_)[column_] = 0.0f;
  }

  PL_DEVICE void run_chunk(const DeltaSpan& span) {
    sync_threads();  // the rows of the chunk before have been read
    load_rows(span);
    load_gates(span);
    sync_threads();
    weigh_rows(span);
    if (span.has_state()) recall(span);
    sync_threads();
    if (warp_index() == 0) update(span);
    sync_threads();
    write_outputs(span);
    if (span.ends_chunk()) close(span);
  }

  PL_DEVICE int64_t row_of(const DeltaSpan& span, int row) const {
    return rows_.row_of(span.start + row);
  }
  // Of this thread's column.
  PL_DEVICE float* state_in(int32_t block) const {
    return p_.states.state(block) + head_ * p_.key_dim * p_.padded_value + column_;
  }

  // Keys and updates of all rows so far, queries and values of those of the slice.
  PL_DEVICE void load_rows(const DeltaSpan& span) {
    const auto lane = lane_index();
    for (int row = static_cast<int>(warp_index()); row < span.last; row += kDeltaWarps) {
      if (row < span.first) {
        const float* const key = p_.kept_key(open_, row, key_head_);
        for (int64_t d = lane; d < p_.key_dim; d += kWarpLanes) s_.keys[row][d] = key[d];
        if (has_column_) s_.updates[row][lane] = p_.kept_update(open_, row, head_)[column_];
        continue;
      }
      const float* const key = p_.k.head(row_of(span, row), key_head_);
      const float* const query = p_.q.head(row_of(span, row), key_head_);
      for (int64_t d = lane; d < p_.key_dim; d += kWarpLanes) {
        s_.keys[row][d] = key[d];
        s_.queries[row][d] = query[d];
      }
      if (has_column_) s_.values[row][lane] = p_.v.head(row_of(span, row), head_)[column_];
    }
  }

  PL_DEVICE void load_gates(const DeltaSpan& span) {
    const auto row = static_cast<int>(thread_index());
    if (row >= span.last) return;
    if (row < span.first) {
      s_.decay_sums[row] = *p_.kept_decay(open_, row, head_);
      return;
    }
    s_.decay_sums[row] = p_.decay_sum(rows_, head_, span.start + span.first, span.start + row);
    s_.beta[row] = p_.beta.row(row_of(span, row))[head_];
  }

  PL_DEVICE void weigh_rows(const DeltaSpan& span) {
    constexpr int kPairsAtOnce = kDeltaWarps * kWarpLanes / kDotLanes;
    const auto first_pair = static_cast<int>(thread_index() / kDotLanes);
    const uint32_t lane = thread_index() % kDotLanes;
    // A warp's pairs are all among them, or none.
    const int num_pairs = (span.last - span.first) * kChunkRows;
    for (int pair = first_pair; pair < num_pairs; pair += kPairsAtOnce) {
      const int row = span.first + pair / kChunkRows, before = pair % kChunkRows;
      float of_key = 0.0f, of_query = 0.0f;
      if (before <= row) {
        for (int64_t d = lane; d < p_.key_dim; d += kDotLanes) {
          of_key = fused_multiply_add(s_.keys[before][d], s_.keys[row][d], of_key);
          of_query = fused_multiply_add(s_.keys[before][d], s_.queries[row][d], of_query);
        }
      }
      for (uint32_t distance = kDotLanes / 2; distance > 0; distance /= 2) {
        of_key = of_key + shuffle_xor(of_key, distance);
        of_query = of_query + shuffle_xor(of_query, distance);
      }
      if (lane != 0 || before > row) continue;
      const float decay = exponential(s_.decay_sums[row] - s_.decay_sums[before]);
      s_.key_weights[row][before] = decay * of_key;
      s_.query_weights[row][before] = decay * of_query;
    }
    const auto row = static_cast<int>(thread_index());
    if (row >= span.last) return;
    s_.since_start[row] = exponential(s_.decay_sums[row]);
    s_.to_end[row] = exponential(s_.decay_sums[span.last - 1] - s_.decay_sums[row]);
  }

  // The state times keys and queries. Rows outside of the span get numbers that nobody reads.
  PL_DEVICE void recall(const DeltaSpan& span) {
    static_assert(kChunkRows % kRecalledRows == 0 && 2 * kRecalledRows == kDeltaWarps);
    const float* const state = state_in(rows_.block);
    const uint32_t warp = warp_index(), lane = lane_index();
    for (int first = span.first / kRecalledRows * kRecalledRows; first < span.last;
         first += kRecalledRows) {
      float sums[2 * kRecalledRows] = {};
      if (has_column_) {
        for (int64_t i = warp; i < p_.key_dim; i += kDeltaWarps) {
          const float element = state[i * p_.padded_value];
          PL_UNROLL
          for (int r = 0; r < kRecalledRows; ++r) {
            sums[r] = fused_multiply_add(s_.keys[first + r][i], element, sums[r]);
            sums[kRecalledRows + r] =
                fused_multiply_add(s_.queries[first + r][i], element, sums[kRecalledRows + r]);
          }
        }
      }
      sync_threads();  // the sums of the rows before have been added
      PL_UNROLL
      for (int r = 0; r < 2 * kRecalledRows; ++r) s_.partial[warp][r][lane] = sums[r];
      sync_threads();
      float total = s_.partial[0][warp][lane];
      for (int w = 1; w < kDeltaWarps; ++w) total = total + s_.partial[w][warp][lane];
      const int row = first + static_cast<int>(warp) % kRecalledRows;
      (warp < kRecalledRows ? s_.known : s_.read)[row][lane] = total;
    }
  }

  // By one warp: a row's update needs those before it.
  PL_DEVICE void update(const DeltaSpan& span) {
    if (!has_column_) return;
    const uint32_t lane = lane_index();
    for (int row = span.first; row < span.last; ++row) {
      float update = s_.values[row][lane];
      if (p_.corrects) {
        if (span.has_state()) {
          update = fused_multiply_add(-s_.since_start[row], s_.known[row][lane], update);
        }
        for (int j = 0; j < row; ++j) {
          update = fused_multiply_add(-s_.key_weights[row][j], s_.updates[j][lane], update);
        }
      }
      update = s_.beta[row] * update;
      s_.updates[row][lane] = update;
      if (!span.ends_chunk()) p_.kept_update(open_, row, head_)[column_] = update;
    }
  }

  PL_DEVICE void write_outputs(const DeltaSpan& span) {
    if (!has_column_) return;
    const uint32_t lane = lane_index();
    for (int row = span.first + static_cast<int>(warp_index()); row < span.last;
         row += kDeltaWarps) {
      float sum = span.has_state() ? s_.since_start[row] * s_.read[row][lane] : 0.0f;
      for (int j = 0; j <= row; ++j) {
        sum = fused_multiply_add(s_.query_weights[row][j], s_.updates[j][lane], sum);
      }
      if (p_.skip != nullptr) {
        sum = fused_multiply_add(p_.skip[head_], s_.values[row][lane], sum);
      }
      p_.out.head(row_of(span, row), head_)[column_] = sum;
    }
  }

  // The state after the chunk. A thread writes the elements that recall() has it read.
  PL_DEVICE void close(const DeltaSpan& span) {
    if (!has_column_) return;
    float* const state = state_in(rows_.block);
    float* const saved = saved_state(span.start + kStateChunk);
    float updates[kChunkRows];
    PL_UNROLL
    for (int j = 0; j < kChunkRows; ++j) updates[j] = s_.to_end[j] * s_.updates[j][lane_index()];
    const float decay = s_.since_start[kChunkRows - 1];
    for (int64_t i = warp_index(); i < p_.key_dim; i += kDeltaWarps) {
      float sum = span.has_state() ? decay * state[i * p_.padded_value] : 0.0f;
      PL_UNROLL
      for (int j = 0; j < kChunkRows; ++j) {
        sum = fused_multiply_add(s_.keys[j][i], updates[j], sum);
      }
      state[i * p_.padded_value] = sum;
      if (saved != nullptr) saved[i * p_.padded_value] = sum;
    }
  }
  // Where the state at `position` is saved, null if it isn't.
  PL_DEVICE float* saved_state(int64_t position) const {
    for (int32_t i = 0; i < rows_.num_saves; ++i) {
      const SavePoint save = p_.states.saves[rows_.first_save + i];
      if (save.position == position) return state_in(save.block);
    }
    return nullptr;
  }

  const DeltaParams& p_;
  DeltaRows& s_;
  StateRows rows_;
  int64_t head_;
  int64_t key_head_;
  int64_t column_;
  bool has_column_;
  float* open_;
};

struct DeltaRule {
  static constexpr std::string_view kName = "delta_rule";
  static constexpr uint32_t kThreads = kDeltaWarps * kWarpLanes;
  using Params = DeltaParams;
  using Shared = DeltaRows;

  PL_DEVICE static void run(const Params& params, Shared& shared) {
    DeltaHeadPart(params, shared).run();
  }
};

// Writes keys and decays of the chunks that slices leave open, its rows along y of the grid.
// Blocks of DeltaRule share those that were kept before, so none of them can.
struct KeepDeltaRows {
  static constexpr std::string_view kName = "keep_delta_rows";
  static constexpr uint32_t kThreads = 256;
  using Params = DeltaParams;
  struct Shared {};

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const StateRows rows = p.states.slices[block_index().x];
    const int64_t row = block_index().y, position = chunk_start(rows.end()) + row;
    if (position < rows.first_position || position >= rows.end()) return;
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
