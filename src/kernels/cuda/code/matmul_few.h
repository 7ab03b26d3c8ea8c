// Products of up to 8 rows with bfloat16 weights, which are a stream of the weights. A warp has a
// tile of 16 columns (half of a panel) and a segment of K; loads of 8 bytes a lane go straight to
// the registers that matrix instructions take. A block has tiles side by side and the segments of
// K, whose sums it adds in ascending order.
//
// Loads stand in one line without a branch between them: kInFlight steps of them, 512 bytes of a
// warp each, are under way while earlier ones are multiplied. On an H200 a matrix of 2,048 x
// 128,256 takes 124 us alone, the time of a copy of as many bytes; one of 2,048 x 2,048 takes 5 us,
// where the latencies of the launch, of the inputs and of two rounds of loads count.
#pragma once

#include "kernels/cuda/code/kernel_name.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

constexpr int64_t kFewRows = 8;

// A lane's weights of a tile of 16 columns: what it loads of a step, and the operand that it makes
// of that.
class Bf16Tile {
 public:
  using Panels = PlainPanels;
  using Loaded = HalfStep;
  static constexpr uint32_t kMostInFlight = 32;  // loads of a warp
  static constexpr std::string_view kPrefix = "";

  // Tile `index`: counted from the first panel of the columns, whose two halves are tiles 0 and 1.
  PL_DEVICE Bf16Tile(const PanelColumns& columns, int64_t index)
      : from_(columns.panel(index / 2) + index % 2 * (2 * kCoreGroupBytes) + HalfStep::place(0)),
        stage_bytes_(columns.weights.stage_bytes) {}

  // Loads of 16 bytes would need an exchange with a neighbouring lane, which takes longer.
  PL_DEVICE HalfStep load(uint32_t step) const {
    const std::byte* const from =
        from_ + step / kStageSteps * stage_bytes_ + step % kStageSteps * (2 * kCoreBytes);
    return {{load_once<Words2>(from), load_once<Words2>(from + kCoreGroupBytes)}};
  }
  PL_DEVICE Words4 operand(const HalfStep& loaded, uint32_t /*step*/) const {
    return {{loaded.groups[0].words[0], loaded.groups[1].words[0], loaded.groups[0].words[1],
             loaded.groups[1].words[1]}};
  }
  // The column of the panel that is row g of an operand (i = 0), or row g + 8, of half h.
  PL_DEVICE static uint32_t column(uint32_t half, uint32_t i) {
    return 16 * half + 8 * i + lane_group();
  }

 private:
  const std::byte* from_;
  int64_t stage_bytes_;
};

// What a block multiplies: each panel with the same rows.
template <class Panels, int kMatrices>
struct FewRowsParams {
  ColumnsOf<Panels> columns[kMatrices];  // of two matrices, the first is the gate's
  int64_t num_columns = 0;
  ConstRows x;
  bool is_aligned = false;  // each row is at a multiple of 16 bytes, the width one of 4
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

constexpr std::string_view few_rows_suffix(uint32_t splits) {
  if (splits == 1) return "few_rows_1_segment";
  if (splits == 2) return "few_rows_2_segments";
  return splits == 4 ? "few_rows_4_segments" : "few_rows_8_segments";
}

// Blocks along x of the grid have kTiles tiles of columns each (of two matrices: half as many of
// each), and kSplits segments of K at once.
template <class Tile, int kMatrices, uint32_t kTiles, uint32_t kSplits>
struct FewRows {
  static constexpr KernelName kFullName{kMatrices == 2 ? "gated_" : "", Tile::kPrefix,
                                        few_rows_suffix(kSplits)};
  static constexpr std::string_view kName = kFullName.text();
  static constexpr uint32_t kThreads = kTiles * kSplits * kWarpLanes;
  static constexpr bool kWaitsItself = true;
  static constexpr uint32_t kColumnTiles = kTiles / kMatrices;  // of a block
  using Params = FewRowsParams<typename Tile::Panels, kMatrices>;
  using Shared = FewRowsShared<kTiles, kSplits>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const uint32_t segments =
        (p.columns[0].weights.k + uint32_t{kSegmentLength} - 1) / uint32_t{kSegmentLength};
    const Tile weights = own_weights(p);
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
    begin_later_kernels();
    write(p, shared, totals);
  }

 private:
  // Loads of a warp that are under way.
  static constexpr uint32_t kInFlight =
      kSplits <= 2 || Tile::kMostInFlight < 32 ? Tile::kMostInFlight : 16;
  static constexpr uint32_t kTail = kInFlight < 8 ? kInFlight : 8;  // of a short segment's rest

  PL_DEVICE static uint32_t own_tile() { return warp_index() % kTiles; }
  PL_DEVICE static uint32_t own_split() { return warp_index() / kTiles; }
  PL_DEVICE static int own_matrix() { return static_cast<int>(own_tile()) % kMatrices; }
  // The warp's tile, counted as Bf16Tile counts them.
  PL_DEVICE static int64_t column_tile() {
    return int64_t{block_index().x} * kColumnTiles + own_tile() / kMatrices;
  }

  PL_DEVICE static void add(const Floats4& sums, Floats4& totals) {
    PL_UNROLL
    for (int i = 0; i < 4; ++i) totals.of[i] = totals.of[i] + sums.of[i];
  }

  // Those of the last tile where the block has more tiles than there are.
  PL_DEVICE static Tile own_weights(const Params& p) {
    const auto& columns = p.columns[own_matrix()];
    const int64_t last_panel = (columns.first % kPanelWidth + p.num_columns - 1) / kPanelWidth;
    const int64_t last = 2 * last_panel + 1;
    return Tile(columns, column_tile() < last ? column_tile() : last);
  }

  // The sums of a segment, or of none; the inputs of kSplits segments from `first` on.
  PL_DEVICE static Floats4 multiply(const Params& p, Shared& shared, const Tile& weights,
                                    uint32_t first, uint32_t segment) {
    const auto all_steps = static_cast<uint32_t>(num_steps(p.columns[0].weights.k));
    const uint32_t begin = segment * kStepsOfSegment;
    const uint32_t left = begin < all_steps ? all_steps - begin : 0;
    const uint32_t steps = left < kStepsOfSegment ? left : kStepsOfSegment;
    // A lane reads a step that is there, whether it needs it or not.
    const auto load = [&weights, begin, steps](uint32_t step) {
      return weights.load(begin + (step < steps ? step : steps - 1));
    };
    typename Tile::Loaded loaded[kInFlight];
    if (steps > 0) {
      PL_UNROLL
      for (uint32_t i = 0; i < kInFlight; ++i) loaded[i] = load(i);
    }
    wait_for_earlier_kernels();  // weights are there, inputs may not be
    load_inputs(p, shared, first);
    const uint32_t row = lane_group() < p.num_rows ? lane_group() : 0;
    const uint32_t* const inputs = shared.inputs[own_split()][row] + 2 * lane_in_group();
    float sums[4] = {};
    const auto multiply_step = [&](const typename Tile::Loaded& own, uint32_t step) {
      const Words4 a = weights.operand(own, begin + step);
      const auto pairs = load_as<Words2>(inputs + step * kStepPairs);
      const uint32_t b[2] = {pairs.words[0], pairs.words[1]};
      mma_bf16(sums, a.words, b);
    };
    uint32_t step = 0;
    for (; step + 2 * kInFlight <= steps; step += kInFlight) {
      PL_UNROLL
      for (uint32_t i = 0; i < kInFlight; ++i) {
        const typename Tile::Loaded own = loaded[i];
        loaded[i] = weights.load(begin + step + kInFlight + i);
        multiply_step(own, step + i);
      }
    }
    PL_UNROLL
    for (uint32_t i = 0; i < kInFlight; ++i) {
      if (step + i < steps) multiply_step(loaded[i], step + i);
    }
    for (step += kInFlight; step < steps; step += kTail) {
      PL_UNROLL
      for (uint32_t i = 0; i < kTail; ++i) loaded[i] = load(step + i);
      PL_UNROLL
      for (uint32_t i = 0; i < kTail; ++i) {
        if (step + i < steps) multiply_step(loaded[i], step + i);
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
        quads[i] = inputs_of_row(p.x, place / kOfRow, place < end ? own : k, k, p.is_aligned);
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

  // A lane has two columns of rows 2 t and 2 t + 1.
  PL_DEVICE static void write(const Params& p, Shared& shared, const Floats4& totals) {
    if constexpr (kMatrices == 2) {
      // Where a warp's own sums of segments were.
      if (own_split() == 0) store_as(&shared.sums[own_tile()][lane_index()], totals);
      sync_threads();
      if (own_matrix() > 0) return;
    }
    if (own_split() > 0) return;
    const auto& columns = p.columns[0];
    const int64_t tile = column_tile();
    Floats4 ups{};
    if constexpr (kMatrices == 2) {
      ups = load_as<Floats4>(&shared.sums[own_tile() + 1][lane_index()]);
    }
    PL_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t row = 2 * lane_in_group() + i % 2;
      const uint32_t column = Tile::column(tile % 2, static_cast<uint32_t>(i) / 2);
      const int64_t place = columns.place(tile / 2, column);
      if (row >= p.num_rows || place < 0 || place >= p.num_columns) continue;
      const float total = columns.with_bias(totals.of[i], place);
      p.out.row(row)[place] =
          kMatrices == 1 ? total
                         : activate_gate(p.activation, total,
                                         p.columns[kMatrices - 1].with_bias(ups.of[i], place));
    }
  }
};

template <int kMatrices, uint32_t kTiles, uint32_t kSplits>
using MatmulFewRows = FewRows<Bf16Tile, kMatrices, kTiles, kSplits>;

}  // namespace paceline::cuda
