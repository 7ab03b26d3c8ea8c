// Gradients of the gates of decay and of the gated delta rule. A chunk's rows are computed
// together, the missing ones of a sequence's last chunk as rows of zeros, so an element's bits
// depend on its own sequence alone.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/row_sum.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/vec_math.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int64_t kBackRows = kStateChunk;
// Chunks whose states are kept at a time: those before them are computed again, one segment after
// the other from the last.
constexpr int64_t kSegmentChunks = 64;
constexpr int kSumRows = kLanes == 16 ? 8 : 4;
constexpr int kBlockVectors = kLanes == 16 ? 1 : 2;  // rows are whole lines of 16 elements
constexpr int64_t kBlockColumns = kBlockVectors * kLanes;

void decay_gates_gradient(const GateGradientTask& task) {
  for_each_vector(task.width, [&](int64_t i, int64_t count) {
    const Vec sum = load_upto(task.x + i, count) + load_upto(task.bias + i, count);
    const Vec sigmoid = 1.0f / (1.0f + exp(-sum));
    const Vec slope = -(load_upto(task.rates + i, count) * sigmoid);
    const Vec above = sum < task.low ? Vec{} : slope;
    const Vec within = sum > task.high ? Vec{} : above;
    store_upto(task.dx + i, load_upto(task.dout + i, count) * within, count);
  });
}

struct RowProducts {
  const float* rows;  // [num_rows][row_stride]; a multiple of 16 rows
  int64_t row_stride;
  int64_t num_rows;
  int64_t length;       // of the sum
  const float* matrix;  // [length][columns]
  float* out;           // [num_rows][columns]
  int64_t columns;      // a multiple of 16
};

// out = rows * matrix
void multiply_rows(const RowProducts& all) {
  for (int64_t column = 0; column < all.columns; column += kBlockColumns) {
    for (int64_t row = 0; row < all.num_rows; row += kSumRows) {
      Vec sums[kSumRows][kBlockVectors] = {};
      const float* const factors = all.rows + row * all.row_stride;
      for (int64_t i = 0; i < all.length; ++i) {
        const float* const elements = all.matrix + i * all.columns + column;
#pragma GCC unroll 8
        for (int r = 0; r < kSumRows; ++r) {
          const Vec factor = splat(factors[r * all.row_stride + i]);
#pragma GCC unroll 2
          for (int v = 0; v < kBlockVectors; ++v) {
            sums[r][v] = fma(factor, load(elements + v * kLanes), sums[r][v]);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < kSumRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kBlockVectors; ++v) {
          store(all.out + (row + r) * all.columns + column + v * kLanes, sums[r][v]);
        }
      }
    }
  }
}

struct OuterProducts {
  const float* left;   // [num_rows][height]
  const float* right;  // [num_rows][columns]
  int64_t num_rows;
  int64_t height, columns;  // multiples of 16
  const float* former;      // [height][columns], or null: zeros
  float decay;              // of it
  float* out;               // [height][columns]; may be the former
};

// out = decay * former + left^T * right
void add_outer_products(const OuterProducts& all) {
  for (int64_t line = 0; line < all.height; line += kSumRows) {
    for (int64_t column = 0; column < all.columns; column += kBlockColumns) {
      Vec sums[kSumRows][kBlockVectors] = {};
      const int64_t first = line * all.columns + column;
      if (all.former != nullptr) {
#pragma GCC unroll 8
        for (int r = 0; r < kSumRows; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < kBlockVectors; ++v) {
            sums[r][v] = load(all.former + first + r * all.columns + v * kLanes) * all.decay;
          }
        }
      }
      for (int64_t j = 0; j < all.num_rows; ++j) {
        const float* const factors = all.left + j * all.height + line;
        const float* const elements = all.right + j * all.columns + column;
#pragma GCC unroll 8
        for (int r = 0; r < kSumRows; ++r) {
          const Vec factor = splat(factors[r]);
#pragma GCC unroll 2
          for (int v = 0; v < kBlockVectors; ++v) {
            sums[r][v] = fma(factor, load(elements + v * kLanes), sums[r][v]);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < kSumRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kBlockVectors; ++v) {
          store(all.out + first + r * all.columns + v * kLanes, sums[r][v]);
        }
      }
    }
  }
}

// [height][columns] as [columns][height], both multiples of 16.
void transpose_lines(const float* from, int64_t height, int64_t columns, float* to) {
  for (int64_t line = 0; line < height; line += kLanes) {
    for (int64_t column = 0; column < columns; column += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) square[i] = load(from + (line + i) * columns + column);
      transpose_square(square);
      for (int i = 0; i < kLanes; ++i) store(to + (column + i) * height + line, square[i]);
    }
  }
}

PL_INLINE float dot_lines(const float* x, const float* y, int64_t length) {
  return sum_of(length, [&](int64_t i, int64_t) { return load(x + i) * load(y + i); });
}

// `count` of a chunk's rows, then rows of zeros; elements behind `width` are zeros, too.
void copy_chunk(const float* from, int64_t stride, int64_t count, int64_t width, int64_t padded,
                float* to) {
  for (int64_t row = 0; row < kBackRows; ++row) {
    for (int64_t i = 0; i < padded; i += kLanes) {
      const int64_t part = row < count ? max_of(0, min_of(width - i, kLanes)) : 0;
      store(to + row * padded + i, part > 0 ? load_upto(from + row * stride + i, part) : Vec{});
    }
  }
}

// [kBackRows][kBackRows]: of row i and a row j that isn't behind it; zeros elsewhere.
using RowPairs = float[kBackRows][kBackRows];

// What the two directions have in common.
struct ChunkFactors {
  alignas(64) float sums[kBackRows];         // of log decays since the chunk's start
  alignas(64) float since_start[kBackRows];  // exp(sums)
  alignas(64) float to_end[kBackRows];       // exp(last sum - sums)
  alignas(64) RowPairs between;              // exp(sums[i] - sums[j])
  float beta[kBackRows];

  float whole() const { return since_start[kBackRows - 1]; }
};

class DeltaHeadBackward {
 public:
  explicit DeltaHeadBackward(const DeltaGradientTask& task)
      : task_(task),
        key_(round_up(task.key_dim, 16)),
        value_(round_up(task.value_dim, 16)),
        num_chunks_((task.num_rows + kBackRows - 1) / kBackRows) {
    float* next = task.scratch;
    const auto take = [&](int64_t count) {
      float* const taken = next;
      next += count;
      return taken;
    };
    starts_ = take(num_segments() * state());
    states_ = take(kept_chunks() * state());
    dstate_ = take(state());
    transposed_ = take(state());
    updates_ = take(kept_chunks() * kBackRows * value_);
    errors_ = take(kept_chunks() * kBackRows * value_);
    keys_ = take(kBackRows * key_);
    queries_ = take(kBackRows * key_);
    of_state_ = take(kBackRows * value_);
    outputs_ = take(2 * kBackRows * value_);
    lines_ = take(2 * kBackRows * key_);
    of_updates_ = take(kBackRows * key_);
  }

  static int64_t scratch(int64_t key_dim, int64_t value_dim, int64_t num_rows) {
    const int64_t key = round_up(key_dim, 16), value = round_up(value_dim, 16);
    const int64_t chunks = (num_rows + kBackRows - 1) / kBackRows;
    const int64_t segments = (chunks + kSegmentChunks - 1) / kSegmentChunks;
    const int64_t kept = min_of(chunks, kSegmentChunks);
    return (segments + kept + 2) * key * value + kBackRows * (2 * kept + 3) * value +
           kBackRows * 5 * key;
  }

  void run() {
    // The states at the starts of all segments but the first.
    for (int64_t segment = 0; segment + 1 < num_segments(); ++segment) {
      float* const next = starts_ + (segment + 1) * state();
      for (int64_t chunk = 0; chunk < kSegmentChunks; ++chunk) {
        const float* const former = chunk == 0 ? state_at_start(segment) : next;
        advance(segment * kSegmentChunks + chunk, former, 0, next);
      }
    }
    for (int64_t segment = num_segments() - 1; segment >= 0; --segment) run_segment(segment);
  }

 private:
  int64_t state() const { return key_ * value_; }
  int64_t num_segments() const { return (num_chunks_ + kSegmentChunks - 1) / kSegmentChunks; }
  int64_t kept_chunks() const { return min_of(num_chunks_, kSegmentChunks); }
  const float* state_at_start(int64_t segment) const {
    return segment == 0 ? nullptr : starts_ + segment * state();
  }

  void run_segment(int64_t segment) {
    const int64_t first = segment * kSegmentChunks;
    const int64_t count = min_of(kSegmentChunks, num_chunks_ - first);
    const float* former = state_at_start(segment);
    for (int64_t chunk = 0; chunk < count; ++chunk) {
      float* const next = chunk + 1 < count ? states_ + (chunk + 1) * state() : nullptr;
      advance(first + chunk, former, chunk, next);
      former = next;
    }
    for (int64_t chunk = count - 1; chunk >= 0; --chunk) {
      const float* const start = chunk == 0 ? state_at_start(segment) : states_ + chunk * state();
      go_back(first + chunk, start, chunk);
    }
  }

  int64_t rows_of(int64_t chunk) const {
    return min_of(kBackRows, task_.num_rows - chunk * kBackRows);
  }

  void load_factors(int64_t chunk, ChunkFactors& factors) const {
    const int64_t first = chunk * kBackRows, count = rows_of(chunk);
    float sum = 0.0f;
    for (int64_t i = 0; i < kBackRows; ++i) {
      if (i < count) {
        const float decay = task_.log_decay[(first + i) * task_.log_decay_stride];
        sum = i > 0 ? decay + sum : decay;
      }
      factors.sums[i] = sum;
      factors.beta[i] = i < count ? task_.beta[(first + i) * task_.beta_stride] : 0.0f;
    }
    for (int64_t j = 0; j < kBackRows; j += kLanes) {
      const Vec sums = load(factors.sums + j);
      store(factors.since_start + j, exp(sums));
      store(factors.to_end + j, exp(splat(sum) - sums));
      for (int64_t i = 0; i < kBackRows; ++i) {
        const Vec factor = exp(splat(factors.sums[i]) - sums);
        const Ints place = lane_indices() + static_cast<int32_t>(j);
        store(factors.between[i] + j, place > static_cast<int32_t>(i) ? Vec{} : factor);
      }
    }
  }

  void load_keys(int64_t chunk) {
    copy_chunk(task_.k + chunk * kBackRows * task_.k_stride, task_.k_stride, rows_of(chunk),
               task_.key_dim, key_, keys_);
  }

  // dots[i][j] = left_i . right_j for j up to i.
  static void dot_rows(const float* left, const float* right, int64_t width, RowPairs& dots) {
    for (int64_t i = 0; i < kBackRows; ++i) {
      for (int64_t j = 0; j < kBackRows; ++j) {
        dots[i][j] = j > i ? 0.0f : dot_lines(left + i * width, right + j * width, width);
      }
    }
  }

  static void multiply_pairs(const RowPairs& factors, RowPairs& pairs) {
    for (int64_t i = 0; i < kBackRows; ++i) {
      for (int64_t j = 0; j < kBackRows; j += kLanes) {
        store(pairs[i] + j, load(pairs[i] + j) * load(factors[i] + j));
      }
    }
  }

  // Writes the updates of a chunk and their errors, which are updates before beta, and the state
  // behind it where there is a `next`.
  void advance(int64_t chunk, const float* start, int64_t slot, float* next) {
    ChunkFactors factors;
    load_factors(chunk, factors);
    load_keys(chunk);
    float* const errors = errors_ + slot * kBackRows * value_;
    float* const updates = updates_ + slot * kBackRows * value_;
    copy_chunk(task_.v + chunk * kBackRows * task_.v_stride, task_.v_stride, rows_of(chunk),
               task_.value_dim, value_, errors);
    RowPairs weights;
    if (task_.corrects) {
      dot_rows(keys_, keys_, key_, weights);
      multiply_pairs(factors.between, weights);
      if (start != nullptr) recall_keys(start);
    }
    for (int64_t i = 0; i < kBackRows; ++i) {
      float* const error = errors + i * value_;
      for (int64_t c = 0; c < value_; c += kLanes) {
        Vec sum = load(error + c);
        if (task_.corrects && start != nullptr) {
          sum = fma(splat(-factors.since_start[i]), load(of_state_ + i * value_ + c), sum);
        }
        for (int64_t j = 0; task_.corrects && j < i; ++j) {
          sum = fma(splat(-weights[i][j]), load(updates + j * value_ + c), sum);
        }
        store(error + c, sum);
        store(updates + i * value_ + c, sum * factors.beta[i]);
      }
    }
    if (next == nullptr) return;
    scale_lines(keys_, factors.to_end, 1.0f, lines_);
    add_outer_products({.left = lines_,
                        .right = updates,
                        .num_rows = kBackRows,
                        .height = key_,
                        .columns = value_,
                        .former = start,
                        .decay = factors.whole(),
                        .out = next});
  }

  // S^T k of all rows.
  void recall_keys(const float* matrix) {
    multiply_rows({.rows = keys_,
                   .row_stride = key_,
                   .num_rows = kBackRows,
                   .length = task_.key_dim,
                   .matrix = matrix,
                   .out = of_state_,
                   .columns = value_});
  }

  void scale_lines(const float* lines, const float* factors, float sign, float* out) const {
    for (int64_t j = 0; j < kBackRows; ++j) {
      for (int64_t i = 0; i < key_; i += kLanes) {
        store(out + j * key_ + i, load(lines + j * key_ + i) * (sign * factors[j]));
      }
    }
  }

  void go_back(int64_t chunk, const float* start, int64_t slot) {
    const bool is_last = chunk + 1 == num_chunks_;  // dstate_ is that of the chunk's end
    const int64_t first = chunk * kBackRows;
    ChunkFactors factors;
    load_factors(chunk, factors);
    load_keys(chunk);
    copy_chunk(task_.q + first * task_.q_stride, task_.q_stride, rows_of(chunk), task_.key_dim,
               key_, queries_);
    copy_chunk(task_.dout + first * task_.dout_stride, task_.dout_stride, rows_of(chunk),
               task_.value_dim, value_, outputs_);
    RowPairs queries, keys = {};  // P and A
    dot_rows(queries_, keys_, key_, queries);
    multiply_pairs(factors.between, queries);
    if (task_.corrects) {
      dot_rows(keys_, keys_, key_, keys);
      multiply_pairs(factors.between, keys);
    }
    if (!is_last) recall_keys(dstate_);
    go_back_to_values(chunk, factors, queries, keys, is_last, slot);

    const float* const updates = updates_ + slot * kBackRows * value_;
    const float* const dvalues = outputs_ + kBackRows * value_;
    RowPairs dqueries, dkeys = {};  // of P and, but for the sign, of A
    dot_rows(outputs_, updates, value_, dqueries);
    if (task_.corrects) dot_rows(dvalues, updates, value_, dkeys);
    multiply_pairs(dqueries, queries);
    multiply_pairs(dkeys, keys);
    multiply_pairs(factors.between, dqueries);
    multiply_pairs(factors.between, dkeys);
    if (start != nullptr) {
      transpose_lines(start, key_, value_, transposed_);
      multiply_rows({.rows = outputs_,
                     .row_stride = value_,
                     .num_rows = task_.corrects ? 2 * kBackRows : kBackRows,
                     .length = task_.value_dim,
                     .matrix = transposed_,
                     .out = lines_,
                     .columns = key_});
    }
    if (!is_last) {
      transpose_lines(dstate_, key_, value_, transposed_);
      multiply_rows({.rows = updates,
                     .row_stride = value_,
                     .num_rows = kBackRows,
                     .length = task_.value_dim,
                     .matrix = transposed_,
                     .out = of_updates_,
                     .columns = key_});
    }
    const KeyGradients gradients{.factors = factors,
                                 .dqueries = dqueries,
                                 .dkeys = dkeys,
                                 .has_start = start != nullptr,
                                 .has_end = !is_last};
    write_key_gradients(chunk, gradients);
    double ends = 0.0;
    if (start != nullptr && !is_last) {
      ends = static_cast<double>(factors.whole()) *
             static_cast<double>(dot_lines(start, dstate_, state()));
    }
    write_decay_gradients(chunk, gradients, queries, keys, ends);
    if (start != nullptr) go_back_to_start(factors, is_last);
  }

  // Of values and beta, from the last row to the first; leaves dv without a skip behind outputs_.
  void go_back_to_values(int64_t chunk, const ChunkFactors& factors, const RowPairs& queries,
                         const RowPairs& keys, bool is_last, int64_t slot) {
    const float* const errors = errors_ + slot * kBackRows * value_;
    float* const dvalues = outputs_ + kBackRows * value_;
    const int64_t first = chunk * kBackRows, count = rows_of(chunk);
    for (int64_t j = kBackRows - 1; j >= 0; --j) {
      Vec products = {};
      for (int64_t c = 0; c < value_; c += kLanes) {
        Vec sum = {};
        if (!is_last) sum = load(of_state_ + j * value_ + c) * factors.to_end[j];
        for (int64_t i = j; i < kBackRows; ++i) {
          sum = fma(splat(queries[i][j]), load(outputs_ + i * value_ + c), sum);
        }
        for (int64_t i = j + 1; task_.corrects && i < kBackRows; ++i) {
          sum = fma(splat(-keys[i][j]), load(dvalues + i * value_ + c), sum);
        }
        products = fma(sum, load(errors + j * value_ + c), products);
        const Vec dvalue = sum * factors.beta[j];
        store(dvalues + j * value_ + c, dvalue);
        const int64_t part = min_of(task_.value_dim - c, kLanes);
        if (j >= count || part <= 0) continue;
        const Vec skipped = fma(splat(task_.skip), load(outputs_ + j * value_ + c), dvalue);
        store_upto(task_.dv + (first + j) * task_.dv_stride + c, skipped, part);
      }
      if (j < count) task_.dbeta[(first + j) * task_.dbeta_stride] = reduce_add(products);
    }
  }

  struct KeyGradients {
    const ChunkFactors& factors;
    const RowPairs& dqueries;  // of q_i . k_j
    const RowPairs& dkeys;     // of -k_i . k_j
    bool has_start;            // lines_ are S dout, then S dv
    bool has_end;              // of_updates_ are dS' u
  };

  void write_key_gradients(int64_t chunk, const KeyGradients& g) {
    const int64_t first = chunk * kBackRows, count = rows_of(chunk);
    for (int64_t i = 0; i < count; ++i) {
      float* const dq = task_.dq + (first + i) * task_.dq_stride;
      float* const dk = task_.dk + (first + i) * task_.dk_stride;
      for (int64_t at = 0; at < task_.key_dim; at += kLanes) {
        const int64_t part = min_of(task_.key_dim - at, kLanes);
        Vec of_query = {}, of_key = {};
        if (g.has_start) {
          const Vec decay = splat(g.factors.since_start[i]);
          of_query = load(lines_ + i * key_ + at) * decay;
          if (task_.corrects) of_key = -(load(lines_ + (kBackRows + i) * key_ + at) * decay);
        }
        if (g.has_end) {
          of_key = fma(splat(g.factors.to_end[i]), load(of_updates_ + i * key_ + at), of_key);
        }
        for (int64_t j = 0; j <= i; ++j) {
          const Vec key = load(keys_ + j * key_ + at);
          of_query = fma(splat(g.dqueries[i][j]), key, of_query);
          if (task_.corrects && j < i) of_key = fma(splat(-g.dkeys[i][j]), key, of_key);
        }
        for (int64_t j = i; j < count; ++j) {
          of_key = fma(splat(g.dqueries[j][i]), load(queries_ + j * key_ + at), of_key);
          if (!task_.corrects || j == i) continue;
          of_key = fma(splat(-g.dkeys[j][i]), load(keys_ + j * key_ + at), of_key);
        }
        if (task_.adds_keys) {
          of_query = load_upto(dq + at, part) + of_query;
          of_key = load_upto(dk + at, part) + of_key;
        }
        store_upto(dq + at, of_query, part);
        store_upto(dk + at, of_key, part);
      }
    }
  }

  // The gradient of the sum of log decays up to each row, added up from the last row to the first.
  // `ends` is that of the last one through the state at the chunk's start, `queries` and `keys` are
  // the factors between rows times their gradients.
  void write_decay_gradients(int64_t chunk, const KeyGradients& g, const RowPairs& queries,
                             const RowPairs& keys, double ends) {
    const int64_t first = chunk * kBackRows, count = rows_of(chunk);
    double dsums[kBackRows] = {};
    for (int64_t i = 0; i < kBackRows; ++i) {
      const float* const key = keys_ + i * key_;
      if (g.has_start) {
        float product = dot_lines(queries_ + i * key_, lines_ + i * key_, key_);
        if (task_.corrects) product -= dot_lines(key, lines_ + (kBackRows + i) * key_, key_);
        dsums[i] += static_cast<double>(product * g.factors.since_start[i]);
      }
      if (g.has_end) {
        const auto product =
            static_cast<double>(dot_lines(key, of_updates_ + i * key_, key_) * g.factors.to_end[i]);
        ends += product;
        dsums[i] -= product;
      }
      for (int64_t j = 0; j < i; ++j) {
        const auto product = static_cast<double>(queries[i][j] - keys[i][j]);
        dsums[i] += product;
        dsums[j] -= product;
      }
    }
    dsums[kBackRows - 1] += ends;
    double sum = 0.0;
    for (int64_t i = kBackRows - 1; i >= 0; --i) {
      sum += dsums[i];
      if (i < count) {
        task_.dlog_decay[(first + i) * task_.dlog_decay_stride] = static_cast<float>(sum);
      }
    }
  }

  // dS from dS'.
  void go_back_to_start(const ChunkFactors& factors, bool is_last) {
    scale_lines(queries_, factors.since_start, 1.0f, lines_);
    if (task_.corrects) {
      scale_lines(keys_, factors.since_start, -1.0f, lines_ + kBackRows * key_);
    }
    add_outer_products({.left = lines_,
                        .right = outputs_,
                        .num_rows = task_.corrects ? 2 * kBackRows : kBackRows,
                        .height = key_,
                        .columns = value_,
                        .former = is_last ? nullptr : dstate_,
                        .decay = factors.whole(),
                        .out = dstate_});
  }

  const DeltaGradientTask& task_;
  int64_t key_, value_;  // of a row, padded
  int64_t num_chunks_;
  // Parts of the scratch. States are [key][value].
  float* starts_;             // of segments
  float* states_;             // of the segment's chunks
  float* dstate_;             // at the end of the chunk, then at its start
  float* transposed_;         // a state, [value][key]
  float *updates_, *errors_;  // of the segment's rows, [value]
  float *keys_, *queries_;    // of the chunk's rows, [key]
  float* of_state_;           // what a state has for the chunk's keys, [value]
  float* outputs_;            // dout, then dv, of the chunk's rows, [value]
  float* lines_;              // what a state has for those, [key]
  float* of_updates_;         // what dstate_ has for the updates, [key]
};

void delta_rule_gradient(const DeltaGradientTask& task) {
  if (task.num_rows > 0) DeltaHeadBackward(task).run();
}

int64_t delta_gradient_scratch(int64_t key_dim, int64_t value_dim, int64_t num_rows) {
  return DeltaHeadBackward::scratch(key_dim, value_dim, num_rows);
}

}  // namespace

void add_recurrent_gradient_kernels(KernelTable& table) {
  table.decay_gates_gradient = decay_gates_gradient;
  table.delta_rule_gradient = delta_rule_gradient;
  table.delta_gradient_scratch = delta_gradient_scratch;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
