// Short convolutions, gates of decay and the gated delta rule. An element's bits don't depend on
// how its sequence was cut: each is a chain of multiply-adds in the order of its chunk.
#include "base/portable_math.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/row_sum.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

void convolve(const ConvolutionTask& task) {
  for_each_vector(task.count, [&](int64_t i, int64_t count) {
    Vec sum = task.bias != nullptr ? load_upto(task.bias + i, count) : Vec{};
    for (int64_t tap = 0; tap < task.num_taps; ++tap) {
      if (task.rows[tap] == nullptr) continue;
      const Vec weight = load_upto(task.taps + tap * task.taps_stride + i, count);
      sum = fma(weight, load_upto(task.rows[tap] + i, count), sum);
    }
    store_upto(task.out + i, sum, count);
  });
}

void decay_gates(const GateTask& task) {
  const double low = static_cast<double>(task.low), high = static_cast<double>(task.high);
  for (int64_t i = 0; i < task.width; ++i) {
    const float sum = task.x[i] + task.bias[i];
    const float size = sum < 0.0f ? -sum : sum;
    float tail[kLanes];
    store(tail, exp(splat(-size)));
    const double rest = portable_log(1.0 + static_cast<double>(tail[0]));
    double gate = (sum > 0.0f ? static_cast<double>(sum) : 0.0) + rest;
    if (gate < low) gate = low;
    if (gate > high) gate = high;
    const double rate = static_cast<double>(task.rates[i]);
    task.out[i] = sum != sum ? sum : static_cast<float>(-rate * gate);
  }
}

void multiply(const float* x, const float* y, int64_t width, float* out) {
  for_each_vector(width, [&](int64_t i, int64_t count) {
    store_upto(out + i, load_upto(x + i, count) * load_upto(y + i, count), count);
  });
}

constexpr int64_t kChunk = kStateChunk;
constexpr int kTileRows = 4;
constexpr int kTileVectors = kLanes == 16 ? 1 : 2;  // rows are whole lines of 16 elements
constexpr int64_t kTileColumns = kTileVectors * kLanes;

// `count` elements, then zeros up to `padded`.
PL_INLINE void copy_padded(const float* from, int64_t count, int64_t padded, float* to) {
  for_each_vector(count,
                  [&](int64_t i, int64_t part) { store(to + i, load_upto(from + i, part)); });
  for (int64_t i = round_up(count, kLanes); i < padded; i += kLanes) store(to + i, Vec{});
}

// outs[r] = sum over i of rows[r][i] * matrix[i].
template <class Element>
struct Combination {
  const float* const* rows;  // [num_rows]
  int64_t num_rows;
  int64_t length;         // of the sum
  const Element* matrix;  // [length][stride]
  int64_t stride;
  float* const* outs;
  int64_t columns;  // a multiple of 16
};

template <int kRows, class Element>
PL_INLINE void combine_tile(const Combination<Element>& all, int64_t row, int64_t column) {
  Vec sums[kRows][kTileVectors] = {};
  for (int64_t i = 0; i < all.length; ++i) {
    const Element* const elements = all.matrix + i * all.stride + column;
    Vec line[kTileVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) line[v] = load(elements + v * kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Vec factor = splat(all.rows[row + r][i]);
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) sums[r][v] = fma(factor, line[v], sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) {
      store(all.outs[row + r] + column + v * kLanes, sums[r][v]);
    }
  }
}

template <class Element>
void combine(const Combination<Element>& all) {
  for (int64_t column = 0; column < all.columns; column += kTileColumns) {
    int64_t row = 0;
    for (; row + kTileRows <= all.num_rows; row += kTileRows) {
      combine_tile<kTileRows>(all, row, column);
    }
    if (row + 2 <= all.num_rows) {
      combine_tile<2>(all, row, column);
      row += 2;
    }
    if (row < all.num_rows) combine_tile<1>(all, row, column);
  }
}

// What the rows of one chunk have in common for the value heads of a key head. Keys stand in
// scratch, as other tasks read the block's.
struct DeltaChunk {
  int64_t first = 0;   // position of the chunk
  int64_t offset = 0;  // of the first row in it
  int64_t count = 0;   // rows
  int64_t row = 0;     // of the task's, the first one
  const float* keys[kChunk];
  float key_dots[kChunk][kChunk];    // k_j . k_i of row i
  float query_dots[kChunk][kChunk];  // k_j . q_i
};

PL_INLINE float dot_keys(const float* x, const float* y, int64_t length) {
  return sum_of(length, [&](int64_t i, int64_t) { return load(x + i) * load(y + i); });
}

PL_INLINE float* queries_of(const DeltaTask& task) { return task.scratch; }
PL_INLINE float* scaled_keys_of(const DeltaTask& task) {
  return task.scratch + kChunk * task.padded_key;
}
PL_INLINE float* keys_of(const DeltaTask& task) {
  return task.scratch + 2 * kChunk * task.padded_key;
}
PL_INLINE float* scaled_queries_of(const DeltaTask& task) {
  return task.scratch + 3 * kChunk * task.padded_key;
}
PL_INLINE float* recalled_of(const DeltaTask& task) {
  return task.scratch + 4 * kChunk * task.padded_key;
}

void begin_chunk(const DeltaTask& task, DeltaChunk& chunk) {
  for (int64_t j = 0; j < chunk.offset + chunk.count; ++j) {
    float* const key = keys_of(task) + j * task.padded_key;
    chunk.keys[j] = key;
    if (j < chunk.offset) {
      copy_padded(task.keys + j * task.key_stride, task.padded_key, task.padded_key, key);
      continue;
    }
    const int64_t i = j - chunk.offset, row = chunk.row + i;
    float* const query = queries_of(task) + i * task.padded_key;
    copy_padded(task.k + row * task.k_stride, task.key_dim, task.padded_key, key);
    copy_padded(task.q + row * task.q_stride, task.key_dim, task.padded_key, query);
    if (task.channel_decay) continue;  // their products depend on the head
    for (int64_t before = 0; before <= j; ++before) {
      chunk.query_dots[i][before] = dot_keys(chunk.keys[before], query, task.padded_key);
      if (!task.corrects) continue;
      chunk.key_dots[i][before] = dot_keys(chunk.keys[before], key, task.padded_key);
    }
  }
}

// S^T q of all rows, then S^T k of all where they correct. queries, keys [count][padded_key]
template <class State>
void recall(const DeltaTask& task, const DeltaChunk& chunk, const float* queries, const float* keys,
            const State* state) {
  const float* rows[2 * kChunk];
  float* outs[2 * kChunk];
  const int64_t num_rows = task.corrects ? 2 * chunk.count : chunk.count;
  for (int64_t i = 0; i < chunk.count; ++i) {
    rows[i] = queries + i * task.padded_key;
    rows[chunk.count + i] = keys + i * task.padded_key;
  }
  for (int64_t i = 0; i < num_rows; ++i) outs[i] = recalled_of(task) + i * task.padded_value;
  combine<State>({.rows = rows,
                  .num_rows = num_rows,
                  .length = task.key_dim,
                  .matrix = state,
                  .stride = task.padded_value,
                  .outs = outs,
                  .columns = task.padded_value});
}

// exp(last - decays[j]) of the chunk's rows; what stands behind row `count` means nothing.
PL_INLINE void decay_factors(const float* decays, float last, float* factors) {
  for (int64_t j = 0; j < kChunk; j += kLanes) {
    store(factors + j, exp(splat(last) - load(decays + j)));
  }
}

struct DeltaRow {
  const float* v;
  const float* recalled_query;  // null: there is no state
  const float* recalled_key;
  float decay;  // since the chunk's start
  float beta;
  float skip;
  int64_t num_before;  // rows of the chunk
  const float* key_weights;
  const float* query_weights;
  const float* const* updates;  // of the rows before, and of this one
  float* out;
};

// What differs between a task's rows and heads.
struct RowOfHead {
  int64_t head;
  int64_t index;  // of the row in the chunk's slice
  float decay;
  const float* key_weights;
  const float* query_weights;
  const float* const* updates;
};

PL_INLINE DeltaRow row_of(const DeltaTask& task, const DeltaChunk& chunk, const RowOfHead& at) {
  const int64_t row = chunk.row + at.index, head = at.head;
  const float* const recalled =
      chunk.first > 0 ? recalled_of(task) + at.index * task.padded_value : nullptr;
  return {
      .v = task.v + row * task.v_stride + head * task.v_head_stride,
      .recalled_query = recalled,
      .recalled_key = recalled != nullptr ? recalled + chunk.count * task.padded_value : nullptr,
      .decay = at.decay,
      .beta = task.beta[row * task.beta_stride + head],
      .skip = task.skip != nullptr ? task.skip[head] : 0.0f,
      .num_before = chunk.offset + at.index,
      .key_weights = at.key_weights,
      .query_weights = at.query_weights,
      .updates = at.updates,
      .out = task.out + row * task.out_stride + head * task.out_head_stride};
}

template <bool kCorrects>
PL_INLINE void run_row(const DeltaRow& row, int64_t value_dim, int64_t padded_value) {
  for (int64_t i = 0; i < padded_value; i += kLanes) {
    const int64_t count = max_of(0, min_of(value_dim - i, kLanes));
    const Vec value = load_upto(row.v + i, count);
    Vec update = value, sum = {};
    if (row.recalled_query != nullptr) {
      sum = load(row.recalled_query + i) * row.decay;
      if (kCorrects) update = fma(splat(-row.decay), load(row.recalled_key + i), update);
    }
    for (int64_t j = 0; j < row.num_before; ++j) {
      const Vec before = load(row.updates[j] + i);
      if (kCorrects) update = fma(splat(-row.key_weights[j]), before, update);
      sum = fma(splat(row.query_weights[j]), before, sum);
    }
    update = update * row.beta;
    store(const_cast<float*>(row.updates[row.num_before]) + i, update);
    sum = fma(splat(row.query_weights[row.num_before]), update, sum);
    if (row.skip != 0.0f) sum = fma(splat(row.skip), value, sum);
    if (count > 0) store_upto(row.out + i, sum, count);
  }
}

// The decay of a whole chunk: one, or one of each channel.
struct ChunkDecay {
  const float* factors;
  int64_t stride;  // 0: all channels have the first one
};

// state' = decay * state + sum over j of k_j u_j^T with scaled keys, which is rounded once.
template <class State>
void close_chunk(const DeltaTask& task, const ChunkDecay& decay, const float* const* updates,
                 const State* state, State* closed) {
  const float* const keys = scaled_keys_of(task);  // [kChunk][padded_key]
  for (int64_t i = 0; i < task.key_dim; ++i) {
    for (int64_t column = 0; column < task.padded_value; column += kTileColumns) {
      Vec sums[kTileVectors] = {};
      if (state != nullptr) {
        for (int v = 0; v < kTileVectors; ++v) {
          sums[v] = load(state + i * task.padded_value + column + v * kLanes) *
                    decay.factors[i * decay.stride];
        }
      }
#pragma GCC unroll 16
      for (int64_t j = 0; j < kChunk; ++j) {
        const Vec factor = splat(keys[j * task.padded_key + i]);
        for (int v = 0; v < kTileVectors; ++v) {
          sums[v] = fma(factor, load(updates[j] + column + v * kLanes), sums[v]);
        }
      }
      for (int v = 0; v < kTileVectors; ++v) {
        store(closed + i * task.padded_value + column + v * kLanes, sums[v]);
      }
    }
  }
}

// Copies a head's state at the chunk's end to where it is kept.
template <class State>
void save_states(const DeltaTask& task, const DeltaChunk& chunk, int64_t head, const State* own) {
  const int64_t elements = task.key_dim * task.padded_value;
  for (int64_t s = 0; s < task.num_saves; ++s) {
    if (task.saves[s].position != chunk.first + kChunk) continue;
    __builtin_memcpy(static_cast<State*>(task.saves[s].states) + head * elements, own,
                     static_cast<size_t>(elements) * sizeof(State));
  }
}

template <bool kCorrects, class State>
void run_head(const DeltaTask& task, const DeltaChunk& chunk, int64_t head) {
  State* const own = static_cast<State*>(task.states) + head * task.key_dim * task.padded_value;
  const State* const state = chunk.first > 0 ? own : nullptr;
  if (state != nullptr) {
    recall(task, chunk, queries_of(task), keys_of(task) + chunk.offset * task.padded_key, state);
  }

  alignas(64) float decays[kChunk] = {}, factors[kChunk];
  float key_weights[kChunk], query_weights[kChunk];
  const float* updates[kChunk];
  const int64_t last = chunk.offset + chunk.count;
  for (int64_t j = 0; j < last; ++j) {
    updates[j] = task.updates + j * task.update_stride + head * task.padded_value;
    float& kept = task.decays[j * task.decay_stride + head];
    if (j >= chunk.offset) {
      const int64_t row = chunk.row + j - chunk.offset;
      kept = task.log_decay[row * task.log_decay_stride + head] + (j > 0 ? decays[j - 1] : 0.0f);
    }
    decays[j] = kept;
    if (j < chunk.offset) continue;
    const int64_t i = j - chunk.offset;
    decay_factors(decays, decays[j], factors);
    for (int64_t before = 0; before <= j; ++before) {
      if (kCorrects) key_weights[before] = factors[before] * chunk.key_dots[i][before];
      query_weights[before] = factors[before] * chunk.query_dots[i][before];
    }
    float total[kLanes];
    store(total, exp(splat(decays[j])));
    run_row<kCorrects>(row_of(task, chunk,
                              {.head = head,
                               .index = i,
                               .decay = total[0],
                               .key_weights = key_weights,
                               .query_weights = query_weights,
                               .updates = updates}),
                       task.value_dim, task.padded_value);
  }
  if (last < kChunk) return;
  float total[kLanes];
  store(total, exp(splat(decays[kChunk - 1])));
  decay_factors(decays, decays[kChunk - 1], factors);
  for (int64_t j = 0; j < kChunk; ++j) {
    float* const scaled = scaled_keys_of(task) + j * task.padded_key;
    for (int64_t i = 0; i < task.padded_key; i += kLanes) {
      store(scaled + i, load(chunk.keys[j] + i) * factors[j]);
    }
  }
  close_chunk(task, {.factors = total, .stride = 0}, updates, state, own);
  save_states(task, chunk, head, own);
}

// x *= y, elements of one key.
PL_INLINE void scale_key(float* x, const float* y, int64_t length) {
  for (int64_t i = 0; i < length; i += kLanes) store(x + i, load(x + i) * load(y + i));
}

// What a chunk's rows have of the rows before them on a head whose channels decay apart.
struct ChannelDecays {
  float* rows[kChunk];                  // of each row, [padded_key]
  float key_weights[kChunk][kChunk];    // as DeltaRow has them
  float query_weights[kChunk][kChunk];  // likewise
};

// Keeps the decays of the slice's rows.
void read_decays(const DeltaTask& task, const DeltaChunk& chunk, int64_t head,
                 ChannelDecays& decays) {
  for (int64_t j = 0; j < chunk.offset + chunk.count; ++j) {
    decays.rows[j] = task.decays + j * task.decay_stride + head * task.padded_key;
    if (j < chunk.offset) continue;
    const int64_t row = chunk.row + j - chunk.offset;
    const float* const logarithms =
        task.log_decay + row * task.log_decay_stride + head * task.key_dim;
    for (int64_t i = 0; i < task.padded_key; i += kLanes) {
      const int64_t count = max_of(0, min_of(task.key_dim - i, kLanes));
      store(decays.rows[j] + i, exp(load_upto(logarithms + i, count)));
    }
  }
}

// Walks back from each row to the chunk's start. A row's key and query take the decays of the rows
// that it passes one by one, so no factor is above 1, and stand in scratch as they read the state.
template <bool kCorrects>
void weigh_channels(const DeltaTask& task, const DeltaChunk& chunk, ChannelDecays& decays) {
  const int64_t length = task.padded_key;
  for (int64_t i = 0; i < chunk.count; ++i) {
    const int64_t row = chunk.offset + i;
    float* const query = scaled_queries_of(task) + i * length;
    float* const key = scaled_keys_of(task) + i * length;
    copy_padded(queries_of(task) + i * length, length, length, query);
    if (kCorrects) copy_padded(chunk.keys[row], length, length, key);
    for (int64_t j = row; j >= 0; --j) {
      decays.query_weights[i][j] = dot_keys(chunk.keys[j], query, length);
      scale_key(query, decays.rows[j], length);
      if (!kCorrects) continue;
      decays.key_weights[i][j] = dot_keys(chunk.keys[j], key, length);
      scale_key(key, decays.rows[j], length);
    }
  }
}

// run_head where each channel has a decay of its own.
template <bool kCorrects, class State>
void run_channels(const DeltaTask& task, const DeltaChunk& chunk, int64_t head) {
  State* const own = static_cast<State*>(task.states) + head * task.key_dim * task.padded_value;
  const State* const state = chunk.first > 0 ? own : nullptr;
  ChannelDecays decays;
  read_decays(task, chunk, head, decays);
  weigh_channels<kCorrects>(task, chunk, decays);
  if (state != nullptr) {
    recall(task, chunk, scaled_queries_of(task), scaled_keys_of(task), state);
  }
  const float* updates[kChunk];
  const int64_t last = chunk.offset + chunk.count;
  for (int64_t j = 0; j < last; ++j) {
    updates[j] = task.updates + j * task.update_stride + head * task.padded_value;
  }
  for (int64_t i = 0; i < chunk.count; ++i) {
    run_row<kCorrects>(row_of(task, chunk,
                              {.head = head,
                               .index = i,
                               .decay = 1.0f,
                               .key_weights = decays.key_weights[i],
                               .query_weights = decays.query_weights[i],
                               .updates = updates}),
                       task.value_dim, task.padded_value);
  }
  if (last < kChunk) return;
  float* const total = scaled_queries_of(task);  // of the chunk's channels
  for (int64_t i = 0; i < task.padded_key; i += kLanes) store(total + i, splat(1.0f));
  for (int64_t j = kChunk - 1; j >= 0; --j) {
    float* const scaled = scaled_keys_of(task) + j * task.padded_key;
    copy_padded(chunk.keys[j], task.padded_key, task.padded_key, scaled);
    scale_key(scaled, total, task.padded_key);
    scale_key(total, decays.rows[j], task.padded_key);
  }
  close_chunk(task, {.factors = total, .stride = 1}, updates, state, own);
  save_states(task, chunk, head, own);
}

template <bool kCorrects, class State>
PL_INLINE void run_any_head(const DeltaTask& task, const DeltaChunk& chunk, int64_t head) {
  task.channel_decay ? run_channels<kCorrects, State>(task, chunk, head)
                     : run_head<kCorrects, State>(task, chunk, head);
}

template <class State>
void delta_rule(const DeltaTask& task) {
  DeltaChunk chunk;
  for (int64_t row = 0; row < task.num_rows; row += chunk.count) {
    const int64_t position = task.first_position + row;
    chunk.first = position / kChunk * kChunk;
    chunk.offset = position - chunk.first;
    chunk.count = min_of(kChunk - chunk.offset, task.num_rows - row);
    chunk.row = row;
    begin_chunk(task, chunk);
    for (int64_t head = 0; head < task.num_heads; ++head) {
      task.corrects ? run_any_head<true, State>(task, chunk, head)
                    : run_any_head<false, State>(task, chunk, head);
    }
  }
}

int64_t delta_scratch(int64_t padded_key, int64_t padded_value) {
  return 4 * kChunk * padded_key + 2 * kChunk * padded_value;
}

// A row's decay and input of kLanes channels, from the kept rows or the slice's.
struct ScanRow {
  Vec step;
  Vec input;
  const float* b;
};

// S = exp(-rates * step) S + input b; the sum of S c where there is a c.
PL_INLINE Vec step_states(const ScanTask& task, const ScanRow& row, const float* rates,
                          const float* c, float* states, Vec sum) {
  for (int64_t n = 0; n < task.state_size; ++n) {
    const Vec decay = exp(load(rates + n * kLanes) * row.step);
    const Vec state = fma(decay, load(states + n * kLanes), row.input * row.b[n]);
    store(states + n * kLanes, state);
    if (c != nullptr) sum = fma(splat(c[n]), state, sum);
  }
  return sum;
}

// Writes states at a chunk's end.
template <class State>
PL_INLINE void store_states(const ScanTask& task, const float* states, State* to) {
  for (int64_t n = 0; n < task.state_size; ++n) {
    store(to + n * task.kept_stride, load(states + n * kLanes));
  }
}

// The channels [i, i + count) of the task. States that are rounded where a chunk ends go on
// rounded.
template <class State>
PL_INLINE void scan_lanes(const ScanTask& task, int64_t i, int64_t count) {
  State* const own = static_cast<State*>(task.states) + i;
  float* const states = task.scratch;                      // [state_size][kLanes]
  float* const rates = states + task.state_size * kLanes;  // likewise, negated
  const int64_t first = task.first_position, chunk = first / kChunk * kChunk;
  for (int64_t n = 0; n < task.state_size; ++n) {
    store(rates + n * kLanes, -load_upto(task.rates + n * task.rates_stride + i, count));
    store(states + n * kLanes, chunk > 0 ? load(own + n * task.kept_stride) : Vec{});
  }
  for (int64_t j = 0; j < first - chunk; ++j) {
    const ScanRow row = {.step = load(task.kept_steps + j * task.kept_stride + i),
                         .input = load(task.kept_inputs + j * task.kept_stride + i),
                         .b = task.kept_b + j * task.kept_b_stride};
    step_states(task, row, rates, nullptr, states, Vec{});
  }
  const Vec skip = load_upto(task.skip + i, count);
  for (int64_t r = 0; r < task.num_rows; ++r) {
    const Vec x = load_upto(task.x + r * task.x_stride + i, count);
    const Vec step = load_upto(task.steps + r * task.steps_stride + i, count);
    const ScanRow row = {.step = step, .input = step * x, .b = task.b + r * task.b_stride};
    const int64_t position = first + r, kept = position % kChunk;
    store(task.kept_steps + kept * task.kept_stride + i, row.step);
    store(task.kept_inputs + kept * task.kept_stride + i, row.input);
    const Vec sum = step_states(task, row, rates, task.c + r * task.c_stride, states, skip * x);
    store_upto(task.out + r * task.out_stride + i, sum, count);
    if (kept + 1 < kChunk) continue;
    store_states(task, states, own);
    for (int64_t s = 0; s < task.num_saves; ++s) {
      if (task.saves[s].position != position + 1) continue;
      store_states(task, states, static_cast<State*>(task.saves[s].states) + i);
    }
    if (sizeof(State) == sizeof(float)) continue;
    for (int64_t n = 0; n < task.state_size; ++n) {
      store(states + n * kLanes, load(own + n * task.kept_stride));
    }
  }
}

template <class State>
void selective_scan(const ScanTask& task) {
  for_each_vector(task.count, [&](int64_t i, int64_t count) { scan_lanes<State>(task, i, count); });
}

int64_t scan_scratch(int64_t state_size) { return 2 * state_size * kLanes; }

}  // namespace

void add_recurrent_kernels(KernelTable& table) {
  table.convolve = convolve;
  table.decay_gates = decay_gates;
  table.multiply = multiply;
  table.delta_rule = delta_rule<float>;
  table.delta_rule_bf16 = delta_rule<Bf16>;
  table.delta_scratch = delta_scratch;
  table.selective_scan = selective_scan<float>;
  table.selective_scan_bf16 = selective_scan<Bf16>;
  table.scan_scratch = scan_scratch;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
