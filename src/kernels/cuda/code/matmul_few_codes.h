// Products of up to 8 rows with quantised weights, which are a stream of the weights. A warp has a
// tile of 16 columns and a segment of K: units of codes are under way to its part of shared memory
// while a lane makes earlier ones into operands. A block has tiles side by side and segments of K,
// whose sums it adds in ascending order.
#pragma once

#include "kernels/cuda/code/code_inputs.h"
#include "kernels/cuda/code/code_operands.h"
#include "kernels/cuda/code/kernel_name.h"

namespace paceline::cuda {

constexpr int64_t kFewCodeRows = 8;

template <int kMatrices>
struct FewCodesParams {
  GroupColumns columns[kMatrices];  // of two matrices, the first is the gate's
  int64_t num_columns = 0;
  uint32_t block_tiles = 1;  // of each matrix
  ConstRows x;
  bool is_aligned = false;  // each row is at a multiple of 16 bytes, the width one of 4
  int64_t num_rows = 0;
  Rows out;
  ActivationKind activation = ActivationKind::silu;  // of two
  SplitSums split;                                   // of blocks with a segment each
};

template <uint32_t kTiles, uint32_t kSplits>
struct FewCodesShared {
  static constexpr uint32_t kPairs = uint32_t{kSegmentLength} / kPairInputs;
  // Of a warp's units that are under way: two blocks then fit a multiprocessor of Hopper, and one
  // fits 99 KiB but of eight segments.
  static constexpr uint32_t kRingBytes =
      (kSplits == 4 ? 5 : 10) * (kVectorBytes + kUnitNumberBytes);
  Words4 inputs[kSplits][kPairs][kWarpLanes];
  alignas(16) std::byte rings[kTiles * kSplits][kRingBytes];
  Floats4 sums[kTiles * kSplits][kWarpLanes];
  uint32_t is_last;
};

// A warp's sums of a tile.
struct FewCodeSums {
  static constexpr uint32_t kPieces = 1;
  Floats4 sums;

  PL_DEVICE void clear() { sums = {}; }
  PL_DEVICE void save(Floats4* to, uint32_t /*threads*/) const {
    store_as(to + thread_index(), sums);
  }
  PL_DEVICE void add(const Floats4& other) {
    PL_UNROLL
    for (int i = 0; i < 4; ++i) sums.of[i] = sums.of[i] + other.of[i];
  }
  PL_DEVICE void add_saved(const Floats4* from, uint32_t /*threads*/) {
    add(load_as<Floats4>(from + thread_index()));
  }
};

constexpr std::string_view few_codes_suffix(uint32_t splits) {
  if (splits == 1) return "few_codes_1_segment";
  if (splits == 2) return "few_codes_2_segments";
  return splits == 4 ? "few_codes_4_segments" : "few_codes_8_segments";
}

// Blocks along x of the grid have up to kTiles tiles of columns each (of two matrices: half as many
// of each), and kSplits segments of K at once; of split sums, blocks along z have one segment.
template <int kMatrices, uint32_t kTiles, uint32_t kSplits>
struct MatmulFewCodes {
  static constexpr KernelName kFullName{kMatrices == 2 ? "gated_" : "", few_codes_suffix(kSplits)};
  static constexpr std::string_view kName = kFullName.text();
  static constexpr uint32_t kThreads = kTiles * kSplits * kWarpLanes;
  static constexpr uint32_t kColumnTiles = kTiles / kMatrices;  // of a block, at most
  static constexpr bool kWaitsItself = true;
  using Params = FewCodesParams<kMatrices>;
  using Shared = FewCodesShared<kTiles, kSplits>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const uint32_t segments =
        (p.columns[0].weights.k + uint32_t{kSegmentLength} - 1) / uint32_t{kSegmentLength};
    const CodeTile tile = own_weights(p);
    const CodeForm form = tile.form();
    FewCodeSums totals{};
    const bool is_split = p.split.num_segments > 0;
    const uint32_t begin = is_split ? block_index().z : 0;
    const uint32_t end = is_split ? begin + 1 : segments;
    for (uint32_t first = begin; first < end; first += kSplits) {
      const uint32_t own = first + own_split(), left = end - first;
      const Floats4 sums =
          multiply(p, shared, tile, form, first, is_active(p) && own < end ? own : segments);
      if constexpr (kSplits == 1) {
        totals.add(sums);
        continue;
      }
      store_as(&shared.sums[warp_index()][lane_index()], sums);
      sync_threads();
      if (own_split() > 0) continue;
      for (uint32_t i = 0; i < kSplits && i < left; ++i) {
        totals.add(load_as<Floats4>(&shared.sums[i * kTiles + own_tile()][lane_index()]));
      }
    }
    begin_later_kernels();
    if constexpr (kSplits == 1 && kMatrices == 1) {
      if (is_split &&
          !add_segments(p.split, block_index().x, begin, kThreads, totals, shared.is_last)) {
        return;
      }
    }
    write(p, shared, totals.sums);
  }

 private:
  static constexpr uint32_t kFourBitInputs = 128;  // of a unit

  PL_DEVICE static uint32_t own_tile() { return warp_index() % kTiles; }
  PL_DEVICE static uint32_t own_split() { return warp_index() / kTiles; }
  PL_DEVICE static int own_matrix() { return static_cast<int>(own_tile()) % kMatrices; }
  PL_DEVICE static bool is_active(const Params& p) {
    return own_tile() / kMatrices < p.block_tiles;
  }
  // The warp's tile, counted as CodeTile counts them.
  PL_DEVICE static int64_t column_tile(const Params& p) {
    return int64_t{block_index().x} * p.block_tiles + own_tile() / kMatrices;
  }

  // Those of the last tile where the block has more tiles than there are.
  PL_DEVICE static CodeTile own_weights(const Params& p) {
    const GroupColumns& columns = p.columns[own_matrix()];
    const int64_t last_panel = (columns.first % kPanelWidth + p.num_columns - 1) / kPanelWidth;
    const int64_t last = 2 * last_panel + 1, wanted = column_tile(p);
    return CodeTile(columns, wanted < last ? wanted : last);
  }

  // The sums of a segment, or of none; the inputs of kSplits segments from `first` on.
  PL_DEVICE static Floats4 multiply(const Params& p, Shared& shared, const CodeTile& tile,
                                    CodeForm form, uint32_t first, uint32_t segment) {
    const uint32_t k = tile.panels().k, begin = segment * uint32_t{kSegmentLength};
    const uint32_t left = begin < k ? k - begin : 0;
    const uint32_t inputs = left < uint32_t{kSegmentLength} ? left : uint32_t{kSegmentLength};
    std::byte* const ring = shared.rings[warp_index()];
    if (inputs > 0) {
      with_units<kFourBitInputs>(tile.panels(), [&]<class Codes>() {
        Copies<Codes> copies(tile, begin, begin + inputs);
        PL_ROLLED
        for (uint32_t i = 0; i < kSlots<Codes>; ++i) {
          copy_unit<Codes>(copies, ring + i * kSlotBytes<Codes>);
        }
      });
    }
    wait_for_earlier_kernels();  // weights are there, inputs may not be
    load_inputs(p, shared, first);
    if (inputs == 0) return {};
    const uint32_t lane = lane_group() < p.num_rows ? lane_index() : lane_in_group();
    const Words4* const own_inputs = &shared.inputs[own_split()][0][lane];
    return with_codes<kFourBitInputs>(tile.panels(), form, [&]<class Codes>() {
      return multiply_units<Codes>(tile, ring, begin, inputs, own_inputs);
    });
  }

  // A unit and its numbers.
  template <class Codes>
  static constexpr uint32_t kSlotBytes = Codes::kVectors* kVectorBytes + kUnitNumberBytes;
  template <class Codes>
  static constexpr uint32_t kSlots = Shared::kRingBytes / kSlotBytes<Codes>;

  template <class Codes>
  using Copies = UnitCopies<Codes::kInputs, Codes::kVectors, Codes::kIsWhole>;

  template <class Codes>
  PL_DEVICE static void copy_unit(Copies<Codes>& copies, std::byte* slot) {
    copies.copy(slot, slot + Codes::kVectors * kVectorBytes);
    commit_copies();
  }

  template <class Codes>
  struct Unit {
    typename Codes::Loaded codes;
    PairNumbers numbers[Codes::kGroups];
  };
  template <class Codes>
  PL_DEVICE static Unit<Codes> load_unit(const CodeTile& tile, const std::byte* slot, uint32_t k) {
    Unit<Codes> loaded;
    loaded.codes = Codes::load(tile.panels(), slot);
    PL_UNROLL
    for (uint32_t i = 0; i < Codes::kGroups; ++i) {
      loaded.numbers[i] = tile.template load_numbers<Codes::kHasMultiples>(
          slot + Codes::kVectors * kVectorBytes, k, k + i * (Codes::kInputs / Codes::kGroups));
    }
    return loaded;
  }

  // A unit is loaded into registers while the one before it is multiplied.
  template <class Codes>
  PL_DEVICE static Floats4 multiply_units(const CodeTile& tile, std::byte* ring, uint32_t begin,
                                          uint32_t inputs, const Words4* own_inputs) {
    constexpr uint32_t kSteps = Codes::kInputs / kStepInputs;
    constexpr uint32_t kStepsOfGroup = kSteps / Codes::kGroups;
    Copies<Codes> copies(tile, begin + kSlots<Codes> * Codes::kInputs, begin + inputs);
    std::byte* const ring_end = ring + kSlots<Codes> * kSlotBytes<Codes>;
    float sums[4] = {};
    wait_copies<kSlots<Codes> - 1>();
    sync_warp();
    Unit<Codes> next = load_unit<Codes>(tile, ring, begin);
    std::byte* slot = ring;
    PL_ROLLED
    for (uint32_t first = 0; first < inputs; first += Codes::kInputs) {
      const Unit<Codes> own = next;
      wait_copies<kSlots<Codes> - 2>();
      sync_warp();  // the next unit has landed, and this one has been read
      copy_unit<Codes>(copies, slot);
      slot = slot + kSlotBytes<Codes> < ring_end ? slot + kSlotBytes<Codes> : ring;
      next = load_unit<Codes>(tile, slot, begin + first + Codes::kInputs);
      typename Codes::Affine affine;
      PL_UNROLL
      for (uint32_t step = 0; step < kSteps; ++step) {
        if (step % kStepsOfGroup == 0) {
          affine = unit_affine<Codes>(tile, own.numbers[step / kStepsOfGroup]);
        }
        const Words4 a = Codes::operand(tile.panels(), own.codes, step, affine);
        const Words4 pairs = load_as<Words4>(own_inputs + step / kPairSteps * kWarpLanes);
        const uint32_t b[2] = {pairs.words[step % kPairSteps * 2],
                               pairs.words[step % kPairSteps * 2 + 1]};
        mma_bf16(sums, a.words, b);
      }
      own_inputs += kSteps / kPairSteps * kWarpLanes;
    }
    wait_copies();
    return {{sums[0], sums[1], sums[2], sums[3]}};
  }

  // Rounds the rows' inputs of kSplits segments. Those behind the last are zero. Lanes have 4
  // quads of each row in turn, so that they write to different banks.
  PL_DEVICE static void load_inputs(const Params& p, Shared& shared, uint32_t first_segment) {
    constexpr uint32_t kQuads = uint32_t{kSegmentLength} / 4, kOfRow = kSplits * kQuads;
    constexpr uint32_t kAtOnce = 4;
    const auto rows = static_cast<uint32_t>(p.num_rows);
    const uint32_t row_bits = rows > 4 ? 3 : rows > 2 ? 2 : rows > 1 ? 1 : 0;
    const uint32_t end = kOfRow << row_bits, begin = first_segment * uint32_t{kSegmentLength};
    // Where sums are shared, the inputs of before have been read.
    if (kSplits == 1 && first_segment > 0 && p.split.num_segments == 0) sync_threads();
    const auto row_of = [=](uint32_t place) { return place / 4 & ((1u << row_bits) - 1); };
    const auto quad_of = [=](uint32_t place) { return place / 4 >> row_bits << 2 | place % 4; };
    for (uint32_t base = thread_index(); base < end; base += kAtOnce * kThreads) {
      Floats4 quads[kAtOnce];
      PL_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint32_t place = base + i * kThreads;
        const bool is_present = place < end && row_of(place) < rows;
        const uint32_t k = p.columns[0].weights.k;
        quads[i] = inputs_of_row(p.x, row_of(place), is_present ? begin + quad_of(place) * 4 : k, k,
                                 p.is_aligned);
      }
      PL_UNROLL
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        const uint32_t place = base + i * kThreads, row = row_of(place);
        const uint32_t quad = quad_of(place) % kQuads;
        if (place >= end || row >= rows) continue;
        // Step quad / 4, of lane 4 * row + quad % 4.
        Words4& words =
            shared.inputs[quad_of(place) / kQuads][quad / 4 / kPairSteps][4 * row + quad % 4];
        store_as(&words.words[quad / 4 % kPairSteps * 2],
                 Words2{{pack_bf16(quads[i].of[0], quads[i].of[1]),
                         pack_bf16(quads[i].of[2], quads[i].of[3])}});
      }
    }
    sync_threads();
  }

  // A lane has columns 4 g + 2 h and the next of rows 2 t and 2 t + 1.
  PL_DEVICE static void write(const Params& p, Shared& shared, const Floats4& totals) {
    if constexpr (kMatrices == 2) {
      // Where a warp's own sums of segments were.
      if (own_split() == 0) store_as(&shared.sums[own_tile()][lane_index()], totals);
      sync_threads();
      if (own_matrix() > 0) return;
    }
    if (own_split() > 0 || !is_active(p)) return;
    const GroupColumns& columns = p.columns[0];
    const int64_t tile = column_tile(p);
    const int64_t first = columns.place(tile / 2, 4 * lane_group() + tile % 2 * 2);
    Floats4 ups{};
    if constexpr (kMatrices == 2) {
      ups = load_as<Floats4>(&shared.sums[own_tile() + 1][lane_index()]);
    }
    PL_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int64_t row = 2 * lane_in_group() + i % 2, place = first + i / 2;
      if (row >= p.num_rows || place < 0 || place >= p.num_columns) continue;
      const float total = columns.with_bias(totals.of[i], place);
      p.out.row(row)[place] =
          kMatrices == 1 ? total
                         : activate_gate(p.activation, total,
                                         p.columns[kMatrices - 1].with_bias(ups.of[i], place));
    }
  }
};

}  // namespace paceline::cuda
