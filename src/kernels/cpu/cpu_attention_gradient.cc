// How the gradients of attention are cut into tiles for the threads.
#include "base/divide_up.h"
#include "kernels/cpu/cpu_gradients.h"
#include "kernels/cpu/row_split.h"

namespace paceline {
namespace {

GradientRows gradient_rows(const Tensor& heads, int64_t row, int64_t head) {
  return {heads.row<float>(row) + head * heads.stride(1), heads.stride(0), heads.stride(1)};
}

}  // namespace

const float* CpuGradients::output_means(const AttentionGradientInputs& in) {
  const int64_t heads = in.q.size(1), head_dim = in.q.size(2);
  auto* const means = row_numbers_.reserve_as<float>(in.q.size(0) * heads);
  split_rows(threads_, in.q.size(0), heads * head_dim, [&](int64_t row) {
    for (int64_t head = 0; head < heads; ++head) {
      means[row * heads + head] =
          kernels_.dot(in.dout.row<float>(row) + head * in.dout.stride(1),
                       in.out.row<float>(row) + head * in.out.stride(1), head_dim);
    }
  });
  return means;
}

// Heavy pieces first: early keys are seen by most rows, late rows see most keys.
void CpuGradients::plan_attention_gradient(const AttentionGradientInputs& in,
                                           std::span<const SequenceRows> sequences) {
  const int64_t heads = in.q.size(1), kv_heads = in.k.size(1);
  pieces_.clear();
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int64_t tiles = divide_up(sequences[i].num_rows, kGradientTile);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      for (int64_t head = 0; head < kv_heads; ++head) {
        pieces_.push_back({i, AttentionPiece::Of::keys, head, tile});
      }
      for (int64_t head = 0; head < heads; ++head) {
        pieces_.push_back({i, AttentionPiece::Of::queries, head, tiles - 1 - tile});
      }
    }
  }
}

void CpuGradients::do_attention_gradient(const AttentionGradientInputs& in,
                                         std::span<const SequenceRows> sequences,
                                         const AttentionParams& params,
                                         const AttentionGradients& out) {
  const int64_t heads = in.q.size(1), head_dim = in.q.size(2), group = heads / in.k.size(1);
  const float* const means = output_means(in);
  plan_attention_gradient(in, sequences);
  const int64_t scratch_floats = kernels_.attention_gradient_scratch(head_dim);
  auto* const scratch = thread_scratch_.reserve_as<float>(scratch_floats * threads_.num_threads());
  const auto run_piece = [&](const AttentionPiece& piece, float* mine) {
    const SequenceRows& sequence = sequences[piece.sequence];
    const bool is_of_keys = piece.of == AttentionPiece::Of::keys;
    const int64_t row = sequence.first_row;
    const int64_t kv_head = is_of_keys ? piece.head : piece.head / group;
    const int64_t head = kv_head * group;
    const AttentionGradientTask task = {.head_dim = head_dim,
                                        .group = group,
                                        .num_rows = sequence.num_rows,
                                        .q = gradient_rows(in.q, row, head),
                                        .dout = gradient_rows(in.dout, row, head),
                                        .k = gradient_rows(in.k, row, kv_head),
                                        .v = gradient_rows(in.v, row, kv_head),
                                        .log_sum_exp = in.log_sum_exp.row<float>(row) + head,
                                        .log_sum_exp_stride = in.log_sum_exp.stride(0),
                                        .means = means + row * heads + head,
                                        .means_stride = heads,
                                        .dq = out.dq.row<float>(row) + head * out.dq.stride(1),
                                        .dq_row_stride = out.dq.stride(0),
                                        .dq_head_stride = out.dq.stride(1),
                                        .dk = out.dk.row<float>(row) + kv_head * out.dk.stride(1),
                                        .dk_stride = out.dk.stride(0),
                                        .dv = out.dv.row<float>(row) + kv_head * out.dv.stride(1),
                                        .dv_stride = out.dv.stride(0),
                                        .scale = params.scale,
                                        .soft_cap = params.soft_cap,
                                        .window = params.window,
                                        .scratch = mine};
    if (is_of_keys) {
      kernels_.attention_key_gradients(task, piece.tile);
    } else {
      kernels_.attention_query_gradients(task, piece.head - head, piece.tile);
    }
  };
  threads_.parallel_for(std::ssize(pieces_), 1, [&](int64_t begin, int64_t end, int thread_index) {
    for (int64_t i = begin; i < end; ++i) {
      run_piece(pieces_[static_cast<size_t>(i)], scratch + thread_index * scratch_floats);
    }
  });
}

}  // namespace paceline
