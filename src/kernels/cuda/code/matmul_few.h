// Products of up to 8 rows with bfloat16 weights, which are a stream of the weights: a block is one
// warp, and each lane copies to shared memory what it will multiply itself, so that no barrier
// delays the stream and no register holds it.
//
// Bytes in flight: an H200 reads 4.3 TB/s with a latency of about 0.7 us, so each of its 132
// multiprocessors must have 23 KB under way (Little's law). A warp keeps kStages - 1 stages of 2 KB
// of weights in flight: 22 KB (28 KB where it has two panels). Shared memory holds 6 such blocks,
// 132 KB in flight, so a matrix with one panel and segment for a multiprocessor keeps its memory
// busy already. Inputs are 64 bytes a row and step, from the second-level cache.
// By steps of 33 cycles (the latency of dependent instructions) a warp takes 1 KB of weights in 33
// cycles, 54 GB/s: more than a multiprocessor's share of the memory, 33 GB/s. Not measured.
#pragma once

#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

constexpr int64_t kFewRows = 8;

// What a block multiplies: each panel with the same rows.
template <int kPanels>
struct FewRowsParams {
  PanelColumns columns[kPanels];  // two: the gate's, and those that it multiplies
  int64_t num_columns = 0;
  ConstRows x;  // rows at multiples of 16 bytes; inputs a multiple of 4
  int64_t num_rows = 0;
  Rows out;
  ActivationKind activation = ActivationKind::silu;  // of two
  SplitSums split;
};

template <int kPanels>
struct FewRowsShared {
  static constexpr uint32_t kStages = kPanels == 1 ? 12 : 8;
  struct Step {
    Words4 weights[kPanels][2][kWarpLanes];
    Floats4 inputs[kWarpLanes];
  };
  Step stages[kStages][kStageSteps];
  uint32_t is_last;
};

// A lane's copies and products. It has inputs 4 t to 4 t + 3 of a step: of row g, and of columns
// 4 g to 4 g + 3.
template <int kPanels>
class FewRowsStream {
 public:
  using Params = FewRowsParams<kPanels>;
  using Shared = FewRowsShared<kPanels>;
  using Sums = PanelSumsOf<kPanels, 1>;

  PL_DEVICE FewRowsStream(const Params& p, Shared& shared, int64_t panel, uint32_t begin,
                          uint32_t end)
      : shared_(shared),
        has_row_(lane_group() < p.num_rows),
        x_(p.x.row(has_row_ ? lane_group() : 0)),
        begin_(begin),
        end_(end) {
    for (int i = 0; i < kPanels; ++i) {
      weights_[i] = p.columns[i].panel(panel) + lane_group() * sizeof(Words4);
    }
  }

  PL_DEVICE uint32_t num_stages() const {
    return (end_ - begin_ + kStageInputs - 1) / kStageInputs;
  }

  PL_DEVICE void begin_copies(uint32_t stage) {
    for (uint32_t step = 0; step < kStageSteps; ++step) {
      const uint32_t first = begin_ + stage * kStageInputs + step * kStepInputs;
      if (first < end_) copy_step(first, shared_.stages[stage % Shared::kStages][step]);
    }
    commit_copies();
  }

  PL_DEVICE void multiply(uint32_t stage, Sums& sums) const {
    for (uint32_t step = 0; step < kStageSteps; ++step) {
      if (begin_ + stage * kStageInputs + step * kStepInputs >= end_) break;
      const typename Shared::Step& from = shared_.stages[stage % Shared::kStages][step];
      const auto x = load_as<Floats4>(&from.inputs[lane_index()]);
      const uint32_t inputs[1][2] = {{pack_bf16(x.of[0], x.of[1]), pack_bf16(x.of[2], x.of[3])}};
      for (int i = 0; i < kPanels; ++i) {
        const PanelStep weights = {load_as<Words4>(&from.weights[i][0][lane_index()]),
                                   load_as<Words4>(&from.weights[i][1][lane_index()])};
        sums.of_panel[i].multiply(weights, inputs);
      }
    }
  }

 private:
  PL_DEVICE void copy_step(uint32_t first, typename Shared::Step& to) const {
    const uint32_t own = first + 4 * lane_in_group();
    const bool is_present = own < end_;
    for (int i = 0; i < kPanels; ++i) {
      const std::byte* const pair = weights_[i] + int64_t{own / 2} * kPairBytes;
      copy_async(&to.weights[i][0][lane_index()], pair, is_present);
      copy_async(&to.weights[i][1][lane_index()], pair + kPairBytes, is_present);
    }
    copy_async(&to.inputs[lane_index()], x_ + own, is_present && has_row_);
  }

  Shared& shared_;
  bool has_row_;
  const float* x_;
  uint32_t begin_;
  uint32_t end_;
  const std::byte* weights_[kPanels];
};

// A panel along x of the grid; along z the segments where each has a block of its own.
template <int kPanels>
struct MatmulFewRows {
  static constexpr std::string_view kName = kPanels == 1 ? "matmul_few_rows" : "gated_few_rows";
  static constexpr uint32_t kThreads = kWarpLanes;
  using Params = FewRowsParams<kPanels>;
  using Shared = FewRowsShared<kPanels>;
  using Sums = PanelSumsOf<kPanels, 1>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const int64_t panel = block_index().x;
    const uint32_t inputs = p.columns[0].weights.k, segment = block_index().z;
    const bool is_split = p.split.num_segments > 0;
    const uint32_t begin = is_split ? segment * uint32_t{kSegmentLength} : 0;
    const uint32_t left = inputs - begin;
    const uint32_t end =
        is_split && left > kSegmentLength ? begin + uint32_t{kSegmentLength} : inputs;
    Sums totals;
    multiply(FewRowsStream<kPanels>(p, shared, panel, begin, end), totals);
    if (is_split && !add_segments(p.split, panel, segment, kThreads, totals, shared.is_last)) {
      return;
    }
    write(p, panel, totals);
  }

 private:
  PL_DEVICE static void multiply(FewRowsStream<kPanels> stream, Sums& totals) {
    constexpr uint32_t kStages = Shared::kStages;
    const uint32_t stages = stream.num_stages();
    for (uint32_t stage = 0; stage + 1 < kStages; ++stage) stream.begin_copies(stage);
    totals.clear();
    Sums sums;
    sums.clear();
    for (uint32_t stage = 0; stage < stages; ++stage) {
      wait_copies<kStages - 2>();
      stream.multiply(stage, sums);
      stream.begin_copies(stage + kStages - 1);  // where the stage before this one was
      if ((stage + 1) % kStagesOfSegment > 0 && stage + 1 < stages) continue;
      totals.add(sums);
      sums.clear();
    }
  }

  PL_DEVICE static void write(const Params& p, int64_t panel, const Sums& totals) {
    const int64_t place = p.columns[0].place(panel, 4 * lane_group());
    for_each_row<1>([&](int row, int parity, int tile) {
      if (row >= p.num_rows) return;
      Floats4 columns = totals.of_panel[0].columns(parity, tile);
      float* const out = p.out.row(row);
      if constexpr (kPanels == 1) {
        write_columns(p.columns[0], place, p.num_columns, columns, out);
      } else {
        write_gated(p, place, columns, totals.of_panel[1].columns(parity, tile), out);
      }
    });
  }

  PL_DEVICE static void write_gated(const Params& p, int64_t place, const Floats4& gates,
                                    const Floats4& ups, float* out) {
    for (int i = 0; i < 4; ++i) {
      const int64_t at = place + i;
      if (at < 0 || at >= p.num_columns) continue;
      out[at] = activate_gate(p.activation, p.columns[0].with_bias(gates.of[i], at),
                              p.columns[kPanels - 1].with_bias(ups.of[i], at));
    }
  }
};

}  // namespace paceline::cuda
