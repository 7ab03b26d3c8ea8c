// How the gradients of attention are cut into tiles for the threads.
#include <algorithm>

#include "base/divide_up.h"
#include "kernels/cpu/cpu_gradients.h"
#include "kernels/cpu/row_split.h"

namespace paceline {
namespace {

GradientRows gradient_rows(const Tensor& heads, int64_t row, int64_t head) {
  return {heads.row<float>(row) + head * heads.stride(1), heads.stride(0), heads.stride(1)};
}

}  // namespace

const float* CpuGradients::output_means(const AttentionGradientKernels& kernels,
                                        const AttentionGradientInputs& in) {
  const int64_t heads = in.q.size(1), head_dim = in.q.size(2);
  auto* const means = row_numbers_.reserve_as<float>(in.q.size(0) * heads);
  split_rows(threads_, in.q.size(0), heads * head_dim, [&](int64_t row) {
    for (int64_t head = 0; head < heads; ++head) {
      means[row * heads + head] =
          kernels.output_mean(in.dout.row<float>(row) + head * in.dout.stride(1),
                              in.out.row<float>(row) + head * in.out.stride(1), head_dim);
    }
  });
  return means;
}

void CpuGradients::plan_attention_units(const AttentionGradientInputs& in, const float* means,
                                        std::span<const SequenceRows> sequences,
                                        const AttentionParams& params,
                                        const AttentionGradients& out) {
  const int64_t heads = in.q.size(1), kv_heads = in.k.size(1), group = heads / kv_heads;
  units_.clear();
  for (const SequenceRows& sequence : sequences) {
    for (int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
      const int64_t row = sequence.first_row, head = kv_head * group;
      const AttentionGradientTask task = {.head_dim = in.q.size(2),
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
                                          .window = params.window};
      units_.push_back({task, divide_up(sequence.num_rows, kGradientTile)});
    }
  }
}

// Calls body(piece, thread index). Heavy pieces first: early keys are seen by most rows, late rows
// see most keys.
template <class Body>
void CpuGradients::for_each_piece(std::span<const AttentionUnit> units, Body&& body) {
  using Of = AttentionPiece::Of;
  int64_t most_tiles = 0;
  for (const AttentionUnit& unit : units) most_tiles = std::max(most_tiles, unit.num_tiles);
  pieces_.clear();
  for (int64_t tile = 0; tile < most_tiles; ++tile) {
    for (const AttentionUnit& unit : units) {
      if (tile >= unit.num_tiles) continue;
      pieces_.push_back({&unit, Of::keys, 0, tile});
      for (int64_t head = 0; head < unit.task.group; ++head) {
        pieces_.push_back({&unit, Of::rows, head, unit.num_tiles - 1 - tile});
      }
    }
  }
  threads_.parallel_for(std::ssize(pieces_), 1, [&](int64_t begin, int64_t end, int thread_index) {
    for (int64_t i = begin; i < end; ++i) body(pieces_[static_cast<size_t>(i)], thread_index);
  });
}

// The most tiles of a unit where each thread computes whole units in one pass; 0 where their pieces
// are shared out. One pass does about three fifths of the work, but it takes units enough, and the
// second-level cache has to hold the sums of all keys.
int64_t CpuGradients::tiles_of_whole_units(const AttentionGradientKernels& kernels,
                                           std::span<const AttentionUnit> units) const {
  if (kernels.all_gradients == nullptr) return 0;
  int64_t most_tiles = 0, all_work = 0;
  for (const AttentionUnit& unit : units) {
    most_tiles = std::max(most_tiles, unit.num_tiles);
    all_work += unit.num_tiles * unit.num_tiles;
  }
  const int64_t head_dim = units.front().task.head_dim;
  const bool is_shared = 2 * most_tiles * most_tiles * threads_.num_threads() <= 3 * all_work;
  return is_shared && most_tiles * head_dim <= kMostWholeSums ? most_tiles : 0;
}

void CpuGradients::run_attention_units(const AttentionGradientKernels& kernels,
                                       std::span<AttentionUnit> units) {
  const auto is_of_keys = [](const AttentionPiece& piece) {
    return piece.of == AttentionPiece::Of::keys;
  };
  if (kernels.packed_bytes != nullptr) {
    int64_t bytes = 0;
    for (const AttentionUnit& unit : units) bytes += kernels.packed_bytes(unit.task);
    auto* packed = panels_.reserve_as<std::byte>(bytes);
    for (AttentionUnit& unit : units) {
      unit.task.packed = packed;
      packed += kernels.packed_bytes(unit.task);
    }
    for_each_piece(units, [&](const AttentionPiece& piece, int /*thread_index*/) {
      if (is_of_keys(piece)) return kernels.pack_keys(piece.unit->task, piece.tile);
      kernels.pack_rows(piece.unit->task, piece.head, piece.tile);
    });
  }
  const int64_t head_dim = units.front().task.head_dim;
  if (const int64_t tiles = tiles_of_whole_units(kernels, units)) {
    const int64_t floats = kernels.scratch_floats(head_dim, tiles);
    auto* const scratch = thread_scratch_.reserve_as<float>(floats * threads_.num_threads());
    threads_.parallel_for(std::ssize(units), 1, [&](int64_t begin, int64_t end, int thread_index) {
      for (int64_t i = begin; i < end; ++i) {
        AttentionGradientTask task = units[static_cast<size_t>(i)].task;
        task.scratch = scratch + thread_index * floats;
        kernels.all_gradients(task);
      }
    });
    return;
  }
  const int64_t scratch_floats = kernels.scratch_floats(head_dim, 1);
  auto* const scratch = thread_scratch_.reserve_as<float>(scratch_floats * threads_.num_threads());
  for_each_piece(units, [&](const AttentionPiece& piece, int thread_index) {
    AttentionGradientTask task = piece.unit->task;
    task.scratch = scratch + thread_index * scratch_floats;
    if (is_of_keys(piece)) return kernels.key_gradients(task, piece.tile);
    kernels.query_gradients(task, piece.head, piece.tile);
  });
}

void CpuGradients::do_attention_gradient(const AttentionGradientInputs& in,
                                         std::span<const SequenceRows> sequences,
                                         const AttentionParams& params,
                                         const AttentionGradients& out) {
  const AttentionGradientKernels& kernels =
      kernels_.attention_gradients[static_cast<size_t>(in.rounding)];
  plan_attention_units(in, output_means(kernels, in), sequences, params, out);
  const std::span<AttentionUnit> units(units_);
  for (size_t first = 0, last = 0; first < units.size(); first = last) {
    int64_t bytes = 0;
    do {
      if (kernels.packed_bytes != nullptr) bytes += kernels.packed_bytes(units[last].task);
      ++last;
    } while (last < units.size() && bytes < kPackedAttentionBytes);
    run_attention_units(kernels, units.subspan(first, last - first));
  }
}

}  // namespace paceline
