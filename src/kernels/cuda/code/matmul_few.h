// Products of up to 8 rows with bfloat16 weights, which are a stream of the weights. A warp has a
// tile of 16 columns (half of a panel) and a segment of K; loads of 16 bytes a lane go straight to
// the registers that matrix instructions take. A block has tiles side by side and the segments of
// K, whose sums it adds in ascending order.
//
// Loads stand in one line without a branch between them: kInFlight of them, 512 bytes of a warp
// each, are under way while earlier ones are multiplied. On an H200 a matrix of 2,048 x 128,256
// takes 124 us alone, the time of a copy of as many bytes; one of 2,048 x 2,048 takes 5 us, where
// the latencies of the launch, of the inputs and of two rounds of loads count.
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
};

template <uint32_t kTiles, uint32_t kSplits>
struct FewRowsShared {
  static constexpr uint32_t kPairs = uint32_t{kSegmentLength} / 2;
  static constexpr uint32_t kPadWords = 8;  // rows then share no bank
  uint32_t inputs[kSplits][kFewRows][kPairs + kPadWords];
  Floats4 sums[kTiles * kSplits][kWarpLanes];
};

constexpr uint32_t few_rows_index(int panels, uint32_t splits) {
  return (panels - 1) * 4 + (splits == 1 ? 0 : splits == 2 ? 1 : splits == 4 ? 2 : 3);
}
constexpr std::string_view kFewRowsNames[8] = {
    "few_rows_1_segment",        "few_rows_2_segments",      "few_rows_4_segments",
    "few_rows_8_segments",       "gated_few_rows_1_segment", "gated_few_rows_2_segments",
    "gated_few_rows_4_segments", "gated_few_rows_8_segments"};

// Blocks along x of the grid have kTiles tiles of columns each (of two matrices: half as many of
// each), and kSplits segments of K at once.
template <int kPanels, uint32_t kTiles, uint32_t kSplits>
struct MatmulFewRows {
  static constexpr std::string_view kName = kFewRowsNames[few_rows_index(kPanels, kSplits)];
  static constexpr uint32_t kThreads = kTiles * kSplits * kWarpLanes;
  static constexpr uint32_t kColumnTiles = kTiles / kPanels;  // of a block
  using Params = FewRowsParams<kPanels>;
  using Shared = FewRowsShared<kTiles, kSplits>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const uint32_t segments =
        (p.columns[0].weights.k + uint32_t{kSegmentLength} - 1) / uint32_t{kSegmentLength};
    const std::byte* const weights = own_weights(p);
    Floats4 totals{};
    for (uint32_t first = 0; first < segments; first += kSplits) {
      const uint32_t own = first + own_split(), left = segments - first;
      const Floats4 sums = multiply(p, shared, weights, first, own < segments ? own : segments);
      if constexpr (kSplits == 1) {
        add(sums, totals);
        continue;
      }
      store_as(&shared.sums[warp_index()][lane_index()], sums);
      sync_threads();
      if (own_split() > 0) continue;
      for (uint32_t i = 0; i < kSplits && i < left; ++i) {
        add(load_as<Floats4>(&shared.sums[i * kTiles + own_tile()][lane_index()]), totals);
      }
    }
    write(p, shared, totals);
  }

 private:
  // Loads of a warp that are under way.
  static constexpr uint32_t kInFlight = kSplits <= 2 ? 32 : 16;
  static constexpr uint32_t kTail = 8;  // of a short segment's rest

  PL_DEVICE static uint32_t own_tile() { return warp_index() % kTiles; }
  PL_DEVICE static uint32_t own_split() { return warp_index() / kTiles; }
  PL_DEVICE static int own_matrix() { return static_cast<int>(own_tile()) % kPanels; }
  // Among the tiles of the columns, of which the first panel has two.
  PL_DEVICE static int64_t column_tile() {
    return int64_t{block_index().x} * kColumnTiles + own_tile() / kPanels;
  }

  PL_DEVICE static void add(const Floats4& sums, Floats4& totals) {
    PL_UNROLL
    for (int i = 0; i < 4; ++i) totals.of[i] = totals.of[i] + sums.of[i];
  }

  // Those of the last tile where the block has more tiles than there are.
  PL_DEVICE static const std::byte* own_weights(const Params& p) {
    const PanelColumns& columns = p.columns[own_matrix()];
    const int64_t last_panel = (columns.first % kPanelWidth + p.num_columns - 1) / kPanelWidth;
    const int64_t last = 2 * last_panel + 1;
    const int64_t tile = column_tile() < last ? column_tile() : last;
    return columns.panel(tile / 2) + tile % 2 * (kHalfWords * 4) + lane_index() * sizeof(Words4);
  }

  // The sums of a segment, or of none; the inputs of kSplits segments from `first` on.
  PL_DEVICE static Floats4 multiply(const Params& p, Shared& shared, const std::byte* weights,
                                    uint32_t first, uint32_t segment) {
    const auto all_steps = static_cast<uint32_t>(num_steps(p.columns[0].weights.k));
    const uint32_t begin = segment * kStepsOfSegment;
    const uint32_t left = begin < all_steps ? all_steps - begin : 0;
    const uint32_t steps = left < kStepsOfSegment ? left : kStepsOfSegment;
    const std::byte* const from = weights + int64_t{begin} * kStepBytes;
    // A lane reads a step that is there, whether it needs it or not.
    const auto load = [from, steps](uint32_t step) {
      return load_once<Words4>(from + (step < steps ? step : steps - 1) * kStepBytes);
    };
    Words4 words[kInFlight];
    if (steps > 0) {
      PL_UNROLL
      for (uint32_t i = 0; i < kInFlight; ++i) words[i] = load(i);
    }
    load_inputs(p, shared, first);
    const uint32_t row = lane_group() < p.num_rows ? lane_group() : 0;
    const uint32_t* const inputs = shared.inputs[own_split()][row] + 2 * lane_in_group();
    float sums[4] = {};
    const auto multiply_step = [inputs, &sums](const Words4& a, uint32_t step) {
      const auto pairs = load_as<Words2>(inputs + step * kStepPairs);
      const uint32_t b[2] = {pairs.words[0], pairs.words[1]};
      mma_bf16(sums, a.words, b);
    };
    uint32_t step = 0;
    for (; step + 2 * kInFlight <= steps; step += kInFlight) {
      PL_UNROLL
      for (uint32_t i = 0; i < kInFlight; ++i) {
        const Words4 own = words[i];
        words[i] = load_once<Words4>(from + (step + kInFlight + i) * kStepBytes);
        multiply_step(own, step + i);
      }
    }
    PL_UNROLL
    for (uint32_t i = 0; i < kInFlight; ++i) {
      if (step + i < steps) multiply_step(words[i], step + i);
    }
    for (step += kInFlight; step < steps; step += kTail) {
      PL_UNROLL
      for (uint32_t i = 0; i < kTail; ++i) words[i] = load(step + i);
      PL_UNROLL
      for (uint32_t i = 0; i < kTail; ++i) {
        if (step + i < steps) multiply_step(words[i], step + i);
      }
    }
    return {{sums[0], sums[1], sums[2], sums[3]}};
  }

  // Rounds the rows' inputs of kSplits segments. Those behind the last are zero.
  PL_DEVICE static void load_inputs(const Params& p, Shared& shared, uint32_t first_segment) {
    constexpr uint32_t kQuads = uint32_t{kSegmentLength} / 4, kOfRow = kSplits * kQuads;
    constexpr uint32_t kAtOnce = 4;
    const uint32_t k = p.columns[0].weights.k, end = static_cast<uint32_t>(p.num_rows) * kOfRow;
    const uint32_t begin = first_segment * uint32_t{kSegmentLength};
    // Where sums are shared, the inputs of before have been read.
    if (kSplits == 1 && first_segment > 0) sync_threads();
    for (uint32_t base = thread_index(); base < end; base += kAtOnce * kThreads) {
      Floats4 quads[kAtOnce];
      PL_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint32_t place = base + i * kThreads, own = begin + place % kOfRow * 4;
        const bool is_present = place < end && own < k;
        const auto quad =
            load_as<Floats4>(p.x.row(is_present ? place / kOfRow : 0) + (is_present ? own : 0));
        quads[i] = is_present ? quad : Floats4{};
      }
      PL_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint32_t place = base + i * kThreads, in_row = place % kOfRow;
        if (place >= end) continue;
        const Floats4& quad = quads[i];
        store_as(&shared.inputs[in_row / kQuads][place / kOfRow][in_row % kQuads * 2],
                 Words2{{pack_bf16(quad.of[0], quad.of[1]), pack_bf16(quad.of[2], quad.of[3])}});
      }
    }
    sync_threads();
  }

  // A lane has columns 4 g + 2 h and the next of rows 2 t and 2 t + 1.
  PL_DEVICE static void write(const Params& p, Shared& shared, const Floats4& totals) {
    if constexpr (kPanels == 2) {
      // Where a warp's own sums of segments were.
      if (own_split() == 0) store_as(&shared.sums[own_tile()][lane_index()], totals);
      sync_threads();
      if (own_matrix() > 0) return;
    }
    if (own_split() > 0) return;
    const PanelColumns& columns = p.columns[0];
    const int64_t tile = column_tile();
    const int64_t first = columns.place(tile / 2, 4 * lane_group() + tile % 2 * 2);
    Floats4 ups{};
    if constexpr (kPanels == 2) {
      ups = load_as<Floats4>(&shared.sums[own_tile() + 1][lane_index()]);
    }
    PL_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t row = 2 * lane_in_group() + i % 2, place = first + i / 2;
      if (row >= p.num_rows || place < 0 || place >= p.num_columns) continue;
      const float total = columns.with_bias(totals.of[i], place);
      p.out.row(row)[place] =
          kPanels == 1 ? total
                       : activate_gate(p.activation, total,
                                       p.columns[kPanels - 1].with_bias(ups.of[i], place));
    }
  }
};

}  // namespace paceline::cuda
