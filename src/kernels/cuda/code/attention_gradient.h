// Gradients of attention over whole sequences, in float32. A block takes a tile of 16 queries of a
// head, or of 16 keys of a kv head, and walks over the tiles that see it.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/math.h"
#include "kernels/cuda/code/rows.h"

namespace paceline::cuda {

constexpr int64_t kGradientTile = 16;  // rows
// Sums over queries run over this many rows of each head of a group in turn.
constexpr int64_t kGradientHeadRows = 64;
constexpr int64_t kMostGradientDims = 256;

// A tile of a sequence's rows.
struct AttentionGradientTile {
  int64_t first_row;      // of the sequence
  int64_t num_rows;       // of the sequence
  int64_t first_of_tile;  // counted from the sequence's first
};

struct AttentionGradientParams {
  Heads q, k, v, dout;
  Heads out;  // of attention
  ConstRows log_sum_exp;
  Rows means;  // of dout * out, [rows, heads]
  const AttentionGradientTile* tiles = nullptr;
  int64_t group = 1;  // heads of a kv head
  int64_t head_dim = 0;
  int64_t window = 0;
  float scale = 1.0f;
  float soft_cap = 0.0f;
  Heads dq, dk, dv;
};

// The sums of dout * out: rows along x of the grid, heads along y.
struct AttentionOutputMeans {
  static constexpr std::string_view kName = "attention_output_means";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = AttentionGradientParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t row = block_index().x;
    for_each_column(p.q.heads, [&p, row](int64_t head) {
      const float* const dout = p.dout.head(row, head);
      const float* const out = p.out.head(row, head);
      float sum = 0.0f;
      for (int64_t d = 0; d < p.head_dim; ++d) sum = fused_multiply_add(dout[d], out[d], sum);
      p.means.row(row)[head] = sum;
    });
  }
};

// The rows of a tile, each padded by an element, so that threads that read one element of 16 rows
// find it in 16 banks.
template <int kDims>
struct GradientRows {
  float of[kGradientTile][kDims + 1];

  // Rows from `first` on, zeros from the end on.
  PL_DEVICE void load(const Heads& heads, const AttentionGradientTile& tile, int64_t first,
                      int64_t head, int64_t head_dim) {
    for (int64_t i = thread_index(); i < kGradientTile * kDims; i += kElementThreads) {
      const int64_t row = i / kDims, d = i % kDims;
      const bool is_there = first + row < tile.num_rows && d < head_dim;
      of[row][d] = is_there ? heads.head(tile.first_row + first + row, head)[d] : 0.0f;
    }
  }
};

template <int kDims>
struct AttentionGradientShared {
  GradientRows<kDims> q, dout, k, v;
  // Of query and key: the weight and the gradient of the product of both.
  float weight[kGradientTile][kGradientTile + 1];
  float by_product[kGradientTile][kGradientTile + 1];
};

// A thread's pair of a query and a key.
struct GradientPair {
  int64_t query, key;  // rows of the sequence
  int64_t head;
};

// Writes the weight of this thread's pair and the gradient of its product, from rows in shared
// memory.
template <int kDims>
PL_DEVICE void add_pair(const AttentionGradientParams& p, const AttentionGradientTile& tile,
                        const GradientPair& pair, AttentionGradientShared<kDims>& shared) {
  const uint32_t of_query = thread_index() / kGradientTile, of_key = thread_index() % kGradientTile;
  float product = 0.0f, by_weight = 0.0f;
  for (int64_t d = 0; d < p.head_dim; ++d) {
    product = fused_multiply_add(shared.q.of[of_query][d], shared.k.of[of_key][d], product);
    by_weight = fused_multiply_add(shared.dout.of[of_query][d], shared.v.of[of_key][d], by_weight);
  }
  const bool is_seen = pair.query < tile.num_rows && pair.key <= pair.query &&
                       (p.window == 0 || pair.key > pair.query - p.window);
  float weight = 0.0f, by_product = 0.0f;
  if (is_seen) {
    const int64_t row = tile.first_row + pair.query;
    float score = product * p.scale, slope = p.scale;
    if (p.soft_cap > 0.0f) {
      const float bent = hyperbolic_tangent(score / p.soft_cap);
      score = bent * p.soft_cap;
      slope = slope * (1.0f - bent * bent);
    }
    weight = exponential(score - p.log_sum_exp.row(row)[pair.head]);
    by_product = weight * (by_weight - p.means.row(row)[pair.head]) * slope;
  }
  shared.weight[of_query][of_key] = weight;
  shared.by_product[of_query][of_key] = by_product;
}

// dq of a tile of queries: tiles along x of the grid, heads along y. Keys are ascending.
template <int kDims>
struct QueryGradient {
  static constexpr std::string_view kName = kDims == 64    ? "query_gradient_64"
                                            : kDims == 128 ? "query_gradient_128"
                                                           : "query_gradient_256";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = AttentionGradientParams;
  using Shared = AttentionGradientShared<kDims>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const AttentionGradientTile tile = p.tiles[block_index().x];
    const int64_t head = block_index().y, kv_head = head / p.group, first = tile.first_of_tile;
    const uint32_t of_query = thread_index() / kGradientTile;
    const uint32_t place = thread_index() % kGradientTile;
    shared.q.load(p.q, tile, first, head, p.head_dim);
    shared.dout.load(p.dout, tile, first, head, p.head_dim);
    float sums[kEach] = {};
    const int64_t seen = p.window > 0 ? first - p.window + 1 : 0;
    int64_t key = seen > 0 ? seen / kGradientTile * kGradientTile : 0;
    for (; key <= first; key += kGradientTile) {
      sync_threads();  // the tile before has been read
      shared.k.load(p.k, tile, key, kv_head, p.head_dim);
      shared.v.load(p.v, tile, key, kv_head, p.head_dim);
      sync_threads();
      add_pair(p, tile, {first + of_query, key + place, head}, shared);
      sync_threads();
      for (int64_t of_key = 0; of_key < kGradientTile; ++of_key) {
        const float by_product = shared.by_product[of_query][of_key];
        PL_UNROLL
        for (uint32_t i = 0; i < kEach; ++i) {
          sums[i] = fused_multiply_add(by_product, shared.k.of[of_key][place + i * kGradientTile],
                                       sums[i]);
        }
      }
    }
    if (first + of_query >= tile.num_rows) return;
    float* const dq = p.dq.head(tile.first_row + first + of_query, head);
    PL_UNROLL
    for (uint32_t i = 0; i < kEach; ++i) {
      if (place + i * kGradientTile < p.head_dim) dq[place + i * kGradientTile] = sums[i];
    }
  }

 private:
  static constexpr uint32_t kEach = kDims / kGradientTile;  // elements of a thread, 16 apart
};

// dk and dv of a tile of keys: tiles along x of the grid, kv heads along y. Queries come in tiles
// of 64 rows, in each head by head.
template <int kDims>
struct KeyGradient {
  static constexpr std::string_view kName = kDims == 64    ? "key_gradient_64"
                                            : kDims == 128 ? "key_gradient_128"
                                                           : "key_gradient_256";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = AttentionGradientParams;
  using Shared = AttentionGradientShared<kDims>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const AttentionGradientTile tile = p.tiles[block_index().x];
    const int64_t kv_head = block_index().y, first = tile.first_of_tile;
    shared.k.load(p.k, tile, first, kv_head, p.head_dim);
    shared.v.load(p.v, tile, first, kv_head, p.head_dim);
    float dk[kEach] = {}, dv[kEach] = {};
    int64_t end = tile.num_rows;  // of the queries that see a key of the tile
    const int64_t behind = first + kGradientTile - 1 + p.window;
    if (p.window > 0 && behind < end) end = behind;
    for (int64_t row = first / kGradientHeadRows * kGradientHeadRows; row < end;
         row += kGradientHeadRows) {
      const int64_t rows_end = end < row + kGradientHeadRows ? end : row + kGradientHeadRows;
      for (int64_t head = kv_head * p.group; head < (kv_head + 1) * p.group; ++head) {
        for (int64_t query = row; query < rows_end; query += kGradientTile) {
          if (query + kGradientTile <= first) continue;  // before all of the keys
          add_queries(p, shared, tile, {query, first, head}, dk, dv);
        }
      }
    }
    const uint32_t of_key = thread_index() / kGradientTile;
    if (first + of_key >= tile.num_rows) return;
    write(p.dk.head(tile.first_row + first + of_key, kv_head), p.head_dim, dk);
    write(p.dv.head(tile.first_row + first + of_key, kv_head), p.head_dim, dv);
  }

 private:
  static constexpr uint32_t kEach = kDims / kGradientTile;  // elements of a thread, 16 apart

  // What a tile of a head's queries, which begins at from.query, adds.
  PL_DEVICE static void add_queries(const Params& p, Shared& shared,
                                    const AttentionGradientTile& tile, const GradientPair& from,
                                    float (&dk)[kEach], float (&dv)[kEach]) {
    const uint32_t row = thread_index() / kGradientTile, place = thread_index() % kGradientTile;
    sync_threads();  // the tile before has been read
    shared.q.load(p.q, tile, from.query, from.head, p.head_dim);
    shared.dout.load(p.dout, tile, from.query, from.head, p.head_dim);
    sync_threads();
    add_pair(p, tile, {from.query + row, from.key + place, from.head}, shared);
    sync_threads();
    for (int64_t of_query = 0; of_query < kGradientTile; ++of_query) {
      const float weight = shared.weight[of_query][row];
      const float by_product = shared.by_product[of_query][row];
      PL_UNROLL
      for (uint32_t i = 0; i < kEach; ++i) {
        const uint32_t d = place + i * kGradientTile;
        dv[i] = fused_multiply_add(weight, shared.dout.of[of_query][d], dv[i]);
        dk[i] = fused_multiply_add(by_product, shared.q.of[of_query][d], dk[i]);
      }
    }
  }

  PL_DEVICE static void write(float* to, int64_t head_dim, const float (&sums)[kEach]) {
    const uint32_t place = thread_index() % kGradientTile;
    PL_UNROLL
    for (uint32_t i = 0; i < kEach; ++i) {
      if (place + i * kGradientTile < head_dim) to[place + i * kGradientTile] = sums[i];
    }
  }
};

}  // namespace paceline::cuda
