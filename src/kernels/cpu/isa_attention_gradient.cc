// The gradients of attention in tiles of 64 rows by 64 keys, from the saved log-sum-exp (Dao et
// al., "FlashAttention", 2022, algorithm 4). Scores are computed anew: nothing is as large as a
// sequence times a sequence.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/score_gradient.h"
#include "kernels/cpu/small_product.h"
#include "kernels/cpu/transpose.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int64_t kTile = kGradientTile;

PL_INLINE int64_t padded_dim(const AttentionGradientTask& task) {
  return round_up(task.head_dim, kLanes);
}

// One thread's buffers. `left` and `right` are the tiles whose rows are the lanes of scores: the
// queries and the gradients of their outputs for gradients by keys, the keys and the values for
// gradients by queries.
struct GradientBuffers {
  float* left_columns;   // [head_dim][kTile]
  float* right_columns;  // [head_dim][kTile]
  float* left_rows;      // [kTile][padded head_dim]
  float* right_rows;     // [kTile][padded head_dim]
  float* weights;        // [kTile][kTile]
  float* scores;         // [kTile][kTile], then their gradients
  float* left_sums;      // [kTile][padded head_dim]
  float* right_sums;     // [kTile][padded head_dim]

  explicit GradientBuffers(const AttentionGradientTask& task) {
    auto* next = static_cast<float*>(task.scratch);
    const auto take = [&next](int64_t floats) {
      float* const taken = next;
      next += floats;
      return taken;
    };
    const int64_t tile = kTile * padded_dim(task);
    left_columns = take(tile);
    right_columns = take(tile);
    left_rows = take(tile);
    right_rows = take(tile);
    weights = take(kTile * kTile);
    scores = take(kTile * kTile);
    left_sums = take(tile);
    right_sums = take(tile);
  }
};

int64_t gradient_scratch(int64_t head_dim, int64_t /*key_tiles*/) {
  return 6 * kTile * round_up(head_dim, kLanes) + 2 * kTile * kTile;
}

// Some rows of one head, `stride` elements apart.
struct HeadRows {
  const float* first;
  int64_t stride;
  int64_t count;
};

void copy_rows(const HeadRows& rows, int64_t head_dim, float* to) {
  const int64_t padded = round_up(head_dim, kLanes);
  for (int64_t row = 0; row < rows.count; ++row) {
    const float* const from = rows.first + row * rows.stride;
    for_each_vector(head_dim, [&](int64_t i, int64_t count) {
      store(to + row * padded + i, load_upto(from + i, count));
    });
  }
}

// to[d][row], with zeros for rows that there aren't.
void copy_columns(const HeadRows& rows, int64_t head_dim, float* to) {
  for (int64_t row = 0; row < kTile; row += kLanes) {
    for_each_vector(head_dim, [&](int64_t d, int64_t count) {
      Vec square[kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        square[i] = row + i < rows.count
                        ? load_upto(rows.first + (row + i) * rows.stride + d, count)
                        : Vec{};
      }
      transpose_square(square);
      for (int64_t i = 0; i < count; ++i) store(to + (d + i) * kTile + row, square[i]);
    });
  }
}

// out[row][lane] = sum over d, ascending, of rows[row][d] * columns[d][lane].
void multiply_columns(const HeadRows& rows, int64_t head_dim, const float* columns, float* out) {
  for (int64_t row = 0; row < rows.count; row += kTilePairs) {
    multiply_small<Start::zero>(kTile / kLanes, min_of(kTilePairs, rows.count - row),
                                {.a = rows.first + row * rows.stride,
                                 .a_stride = rows.stride,
                                 .b = columns,
                                 .b_stride = kTile,
                                 .depth = head_dim,
                                 .out = out + row * kTile,
                                 .out_stride = kTile});
  }
}

// sums[row][d] += sum over i, ascending, of factors[row][i] * rows[i][d].
void add_products(const float* factors, int64_t num_rows, const float* rows, int64_t depth,
                  int64_t padded, float* sums) {
  for (int64_t row = 0; row < num_rows; row += kTilePairs) {
    multiply_small<Start::out>(padded / kLanes, min_of(kTilePairs, num_rows - row),
                               {.a = factors + row * kTile,
                                .a_stride = kTile,
                                .b = rows,
                                .b_stride = padded,
                                .depth = depth,
                                .out = sums + row * padded,
                                .out_stride = padded});
  }
}

void clear_sums(float* sums, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) store(sums + i, Vec{});
}

void write_sums(const float* sums, int64_t num_rows, int64_t head_dim, float* to, int64_t stride) {
  const int64_t padded = round_up(head_dim, kLanes);
  for (int64_t row = 0; row < num_rows; ++row) {
    for_each_vector(head_dim, [&](int64_t i, int64_t count) {
      store_upto(to + row * stride + i, load(sums + row * padded + i), count);
    });
  }
}

// Turns a row of products into weights and gradients of scores; those outside `lanes` are zeros.
// log_sums and means return a vector of those of lanes from an index on.
template <class LogSums, class Means>
PL_INLINE void differentiate_row(const AttentionGradientTask& task, LaneRange lanes,
                                 LogSums&& log_sums, Means&& means, float* scores, float* weights) {
  for (int64_t i = 0; i < kTile; i += kLanes) {
    ScoreGradient result =
        score_gradient(task, load(scores + i), load(weights + i), log_sums(i), means(i));
    if (lanes.begin > i || lanes.end < i + kLanes) {
      result.weight = keep_lanes(result.weight, lanes, i);
      result.gradient = keep_lanes(result.gradient, lanes, i);
    }
    store(weights + i, result.weight);
    store(scores + i, result.gradient);
  }
}

// The keys of a tile, as lanes, that a row sees.
PL_INLINE LaneRange keys_seen_by(const AttentionGradientTask& task, int64_t row, int64_t first) {
  const int64_t begin = task.window > 0 ? max_of(0, row - task.window + 1) : 0;
  return {max_of(begin - first, 0), min_of(row + 1 - first, kTile)};
}

PL_INLINE HeadRows tile_of(const GradientRows& rows, int64_t head, int64_t tile, int64_t count) {
  return {rows.first + tile * kTile * rows.row_stride + head * rows.head_stride, rows.row_stride,
          count};
}

// log-sum-exps and means of a head's rows of a tile, as lanes.
struct RowNumbers {
  float log_sums[kTile];
  float means[kTile];

  RowNumbers(const AttentionGradientTask& task, int64_t head, int64_t tile) {
    const int64_t count = tile_rows(task, tile);
    for (int64_t i = 0; i < kTile; ++i) {
      const int64_t row = tile * kTile + i;
      log_sums[i] = i < count ? task.log_sum_exp[row * task.log_sum_exp_stride + head] : 0.0f;
      means[i] = i < count ? task.means[row * task.means_stride + head] : 0.0f;
    }
  }
};

// Adds what the rows of one head and tile contribute to the gradients of a tile of keys.
void add_row_tile(const AttentionGradientTask& task, const GradientBuffers& buffers, int64_t head,
                  int64_t row_tile, int64_t key_tile) {
  const int64_t num_rows = tile_rows(task, row_tile), num_keys = tile_rows(task, key_tile);
  const int64_t head_dim = task.head_dim, padded = padded_dim(task);
  const HeadRows queries = tile_of(task.q, head, row_tile, num_rows);
  const HeadRows outputs = tile_of(task.dout, head, row_tile, num_rows);
  copy_columns(queries, head_dim, buffers.left_columns);
  copy_columns(outputs, head_dim, buffers.right_columns);
  copy_rows(queries, head_dim, buffers.left_rows);
  copy_rows(outputs, head_dim, buffers.right_rows);
  multiply_columns(tile_of(task.k, 0, key_tile, num_keys), head_dim, buffers.left_columns,
                   buffers.scores);
  multiply_columns(tile_of(task.v, 0, key_tile, num_keys), head_dim, buffers.right_columns,
                   buffers.weights);
  const RowNumbers numbers(task, head, row_tile);
  for (int64_t key = 0; key < num_keys; ++key) {
    differentiate_row(
        task, rows_that_see(task, key_tile * kTile + key, row_tile * kTile),
        [&](int64_t i) { return load(numbers.log_sums + i); },
        [&](int64_t i) { return load(numbers.means + i); }, buffers.scores + key * kTile,
        buffers.weights + key * kTile);
  }
  add_products(buffers.scores, num_keys, buffers.left_rows, num_rows, padded, buffers.left_sums);
  add_products(buffers.weights, num_keys, buffers.right_rows, num_rows, padded, buffers.right_sums);
}

// Sums run over tiles of rows, in a tile over the heads of the group, and over a head's rows, each
// ascending.
void key_gradients(const AttentionGradientTask& task, int64_t key_tile) {
  const GradientBuffers buffers(task);
  const int64_t padded = padded_dim(task), num_keys = tile_rows(task, key_tile);
  clear_sums(buffers.left_sums, kTile * padded);
  clear_sums(buffers.right_sums, kTile * padded);
  const int64_t end = end_of_rows(task, key_tile);
  for (int64_t tile = key_tile; tile * kTile < end; ++tile) {
    for (int64_t head = 0; head < task.group; ++head) {
      add_row_tile(task, buffers, head, tile, key_tile);
    }
  }
  const int64_t first = key_tile * kTile;
  write_sums(buffers.left_sums, num_keys, task.head_dim, task.dk + first * task.dk_stride,
             task.dk_stride);
  write_sums(buffers.right_sums, num_keys, task.head_dim, task.dv + first * task.dv_stride,
             task.dv_stride);
}

// Adds what a tile of keys contributes to the gradients of a tile of rows of one head.
void add_key_tile(const AttentionGradientTask& task, const GradientBuffers& buffers, int64_t head,
                  int64_t row_tile, int64_t key_tile) {
  const int64_t num_rows = tile_rows(task, row_tile), num_keys = tile_rows(task, key_tile);
  const int64_t head_dim = task.head_dim;
  const HeadRows keys = tile_of(task.k, 0, key_tile, num_keys);
  copy_columns(keys, head_dim, buffers.left_columns);
  copy_columns(tile_of(task.v, 0, key_tile, num_keys), head_dim, buffers.right_columns);
  copy_rows(keys, head_dim, buffers.left_rows);
  multiply_columns(tile_of(task.q, head, row_tile, num_rows), head_dim, buffers.left_columns,
                   buffers.scores);
  multiply_columns(tile_of(task.dout, head, row_tile, num_rows), head_dim, buffers.right_columns,
                   buffers.weights);
  const RowNumbers numbers(task, head, row_tile);
  for (int64_t i = 0; i < num_rows; ++i) {
    differentiate_row(
        task, keys_seen_by(task, row_tile * kTile + i, key_tile * kTile),
        [&](int64_t) { return splat(numbers.log_sums[i]); },
        [&](int64_t) { return splat(numbers.means[i]); }, buffers.scores + i * kTile,
        buffers.weights + i * kTile);
  }
  add_products(buffers.scores, num_rows, buffers.left_rows, num_keys, padded_dim(task),
               buffers.left_sums);
}

void query_gradients(const AttentionGradientTask& task, int64_t head, int64_t row_tile) {
  const GradientBuffers buffers(task);
  const int64_t first = row_tile * kTile;
  clear_sums(buffers.left_sums, kTile * padded_dim(task));
  for (int64_t tile = first_key_tile(task, row_tile); tile <= row_tile; ++tile) {
    add_key_tile(task, buffers, head, row_tile, tile);
  }
  write_sums(buffers.left_sums, tile_rows(task, row_tile), task.head_dim,
             task.dq + first * task.dq_row_stride + head * task.dq_head_stride, task.dq_row_stride);
}

}  // namespace

void add_attention_gradient_kernels(KernelTable& table) {
  for (AttentionGradientKernels& kernels : table.attention_gradients) {
    kernels.scratch_floats = gradient_scratch;
    kernels.key_gradients = key_gradients;
    kernels.query_gradients = query_gradients;
  }
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
