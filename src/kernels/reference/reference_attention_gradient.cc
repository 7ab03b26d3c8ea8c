// The gradients of attention in plain loops.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/reference_gradients.h"

namespace paceline {
namespace {

const float* head_at(const Tensor& heads, int64_t row, int64_t head) {
  return heads.row<float>(row) + head * heads.stride(1);
}

double dot_product(const float* x, const float* y, int64_t width) {
  double sum = 0.0;
  for (int64_t i = 0; i < width; ++i) sum += double{x[i]} * double{y[i]};
  return sum;
}

// Gradients of one sequence, as sums in double.
struct SequenceSums {
  int64_t kv_heads;
  int64_t head_dim;
  std::vector<double> dq, dk, dv;  // dq of one row and head, dk and dv [rows][kv_heads][head_dim]

  SequenceSums(int64_t rows, int64_t num_kv_heads, int64_t dim)
      : kv_heads(num_kv_heads),
        head_dim(dim),
        dq(static_cast<size_t>(dim)),
        dk(static_cast<size_t>(rows * num_kv_heads * dim)),
        dv(dk.size()) {}

  size_t at(int64_t row, int64_t kv_head, int64_t d) const {
    return static_cast<size_t>((row * kv_heads + kv_head) * head_dim + d);
  }
};

// Adds one query's part; `row` and keys are counted from the sequence's first row.
void add_query(const AttentionGradientInputs& in, const AttentionParams& params, int64_t first_row,
               int64_t row, int64_t head, SequenceSums& sums) {
  const int64_t head_dim = sums.head_dim, kv_head = head / (in.q.size(1) / in.k.size(1));
  const float* const q = head_at(in.q, first_row + row, head);
  const float* const dout = head_at(in.dout, first_row + row, head);
  const double mean = dot_product(dout, head_at(in.out, first_row + row, head), head_dim);
  const auto log_sum = double{in.log_sum_exp.row<float>(first_row + row)[head]};
  const auto scale = double{params.scale}, cap = double{params.soft_cap};
  std::fill(sums.dq.begin(), sums.dq.end(), 0.0);
  const int64_t first_key = params.window > 0 ? std::max<int64_t>(0, row - params.window + 1) : 0;
  for (int64_t key = first_key; key <= row; ++key) {
    const float* const k = head_at(in.k, first_row + key, kv_head);
    const float* const v = head_at(in.v, first_row + key, kv_head);
    const double product = dot_product(q, k, head_dim) * scale;
    const double bent = cap > 0.0 ? std::tanh(product / cap) : 0.0;
    const double weight = std::exp((cap > 0.0 ? cap * bent : product) - log_sum);
    // d weight / d score = weight (1 - weight) for its own score, -weight weight' for others.
    const double by_score = weight * (dot_product(dout, v, head_dim) - mean);
    const double by_product = by_score * (1.0 - bent * bent) * scale;
    for (int64_t d = 0; d < head_dim; ++d) {
      sums.dq[static_cast<size_t>(d)] += by_product * double{k[d]};
      sums.dk[sums.at(key, kv_head, d)] += by_product * double{q[d]};
      sums.dv[sums.at(key, kv_head, d)] += weight * double{dout[d]};
    }
  }
}

}  // namespace

void ReferenceGradients::do_attention_gradient(const AttentionGradientInputs& in,
                                               std::span<const SequenceRows> sequences,
                                               const AttentionParams& params,
                                               const AttentionGradients& out) {
  const int64_t heads = in.q.size(1), kv_heads = in.k.size(1), head_dim = in.q.size(2);
  for (const SequenceRows& sequence : sequences) {
    SequenceSums sums(sequence.num_rows, kv_heads, head_dim);
    for (int64_t row = 0; row < sequence.num_rows; ++row) {
      for (int64_t head = 0; head < heads; ++head) {
        add_query(in, params, sequence.first_row, row, head, sums);
        float* const dq = out.dq.row<float>(sequence.first_row + row) + head * out.dq.stride(1);
        for (int64_t d = 0; d < head_dim; ++d) {
          dq[d] = static_cast<float>(sums.dq[static_cast<size_t>(d)]);
        }
      }
    }
    for (int64_t row = 0; row < sequence.num_rows; ++row) {
      for (int64_t head = 0; head < kv_heads; ++head) {
        float* const dk = out.dk.row<float>(sequence.first_row + row) + head * out.dk.stride(1);
        float* const dv = out.dv.row<float>(sequence.first_row + row) + head * out.dv.stride(1);
        for (int64_t d = 0; d < head_dim; ++d) {
          dk[d] = static_cast<float>(sums.dk[sums.at(row, head, d)]);
          dv[d] = static_cast<float>(sums.dv[sums.at(row, head, d)]);
        }
      }
    }
  }
}

}  // namespace paceline
