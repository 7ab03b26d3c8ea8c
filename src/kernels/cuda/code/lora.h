// Products with the pairs of LoRA adapters: out += (x a^T) b^T, for a few rows and some columns
// each, all pairs of a batch in two kernels.
//
// Bits equal those of two products and an add. An adapter's weights are few, so a block fetches
// what it multiplies at once: 32 KB of `a`, which covers the latency once in 512 inputs.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/panel_products.h"

namespace paceline::cuda {

constexpr uint32_t kLoraThreads = 128;
constexpr uint32_t kLoraWarps = kLoraThreads / kWarpLanes;
constexpr uint32_t kLoraRows = 8;  // of a tile
// The words of a column that are in shared memory at once: a float32 each, or two bfloat16.
constexpr uint32_t kLoraWords = 256;
constexpr uint32_t kLoraStages = kLoraWords * 2 / kStageInputs;
constexpr uint32_t kPadWords = 4;  // a lane's 16 bytes of 8 rows then share no bank

enum class LoraType : uint32_t { f32, f16, bf16 };

struct LoraMatrix {
  PlainPanels panels;
  LoraType type = LoraType::f32;
};

struct LoraRowRange {
  int64_t first = 0;
  int64_t end = 0;

  PL_DEVICE bool contains(int64_t row) const { return row >= first && row < end; }
  PL_DEVICE bool meets_tile(int64_t first_of_tile) const {
    return first < first_of_tile + kLoraRows && end > first_of_tile;
  }
};

// Inner sums of rows: their products with all rows of a matrix `a`.
struct LoraShrink {
  LoraRowRange rows;
  LoraMatrix a;
  uint32_t num_ranks = 0;
  uint32_t first_inner = 0;  // where they stand among a row's
};

// Outputs of rows, from inner sums.
struct LoraExpand {
  LoraRowRange rows;
  LoraMatrix b;
  uint32_t first_inner = 0;
  int64_t first_column = 0;
  int64_t num_columns = 0;
};

struct LoraLists {
  const LoraShrink* shrinks = nullptr;
  const LoraExpand* expands = nullptr;
  uint32_t num_shrinks = 0;
  uint32_t num_expands = 0;
};

struct LoraParams {
  LoraLists lists;
  const LoraLists* bound = nullptr;  // on the device, instead of `lists`
  int64_t first_row = 0;             // of the lists' rows
  int64_t num_rows = 0;
  ConstRows x;
  uint32_t num_inputs = 0;
  float* inner = nullptr;  // [segments of K, num_rows, inner_width]
  uint32_t inner_width = 0;
  Rows out;

  PL_DEVICE LoraLists own_lists() const { return bound != nullptr ? *bound : lists; }
  PL_DEVICE uint32_t num_segments() const {
    return (num_inputs + uint32_t{kSegmentLength} - 1) / uint32_t{kSegmentLength};
  }
  PL_DEVICE int64_t first_of_tile() const { return first_row + block_index().y * kLoraRows; }
  PL_DEVICE int64_t end_row() const { return first_row + num_rows; }
  PL_DEVICE float* inner_of(uint32_t segment, int64_t row) const {
    return inner + (segment * num_rows + row - first_row) * inner_width;
  }
};

// A block computes the sums of 8 rows (along y of the grid) over one segment of K (along z), with
// 32 ranks (along x) of each matrix of theirs.
struct ShrinkLora {
  static constexpr std::string_view kName = "shrink_lora";
  static constexpr uint32_t kThreads = kLoraThreads;
  using Params = LoraParams;
  struct Shared {
    alignas(16) uint32_t weights[kLoraWords][kPanelWidth];
    uint32_t inputs[kLoraRows][kLoraWords + kPadWords];
  };

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const LoraLists lists = p.own_lists();
    for (uint32_t i = 0; i < lists.num_shrinks; ++i) {
      const LoraShrink shrink = lists.shrinks[i];
      if (!shrink.rows.meets_tile(p.first_of_tile())) continue;
      const uint32_t num_panels =
          (shrink.num_ranks + uint32_t{kPanelWidth} - 1) / uint32_t{kPanelWidth};
      for (uint32_t panel = block_index().x; panel < num_panels; panel += grid_size().x) {
        shrink.a.type == LoraType::bf16 ? multiply_bf16(p, shrink, panel, shared)
                                        : multiply_floats(p, shrink, panel, shared);
      }
    }
  }

 private:
  struct Inputs {
    uint32_t begin;
    uint32_t end;
  };
  PL_DEVICE static Inputs segment_of(const Params& p) {
    const uint32_t begin = block_index().z * uint32_t{kSegmentLength};
    const uint32_t left = p.num_inputs - begin;
    return {begin, begin + (left < kSegmentLength ? left : uint32_t{kSegmentLength})};
  }

  // Words of inputs [begin, end), `kInputs` in each: of the panel, and of the tile's rows. Those
  // beyond, and rows outside the range, are zero.
  template <uint32_t kInputs>
  PL_DEVICE static void load(const Params& p, const LoraShrink& shrink, uint32_t panel,
                             Inputs inputs, Shared& shared) {
    sync_threads();  // what stood there has been read
    load_weights<kInputs>(shrink.a, panel, inputs, shared);
    for (uint32_t i = thread_index(); i < kLoraRows * kLoraWords; i += kThreads) {
      const uint32_t row = i / kLoraWords, word = i % kLoraWords;
      const uint32_t k = inputs.begin + kInputs * word;
      const int64_t of_x = p.first_of_tile() + row;
      const bool is_present = shrink.rows.contains(of_x) && of_x < p.end_row();
      const float* const x = p.x.row(is_present ? of_x : p.first_row);
      const float first = is_present && k < inputs.end ? x[k] : 0.0f;
      if constexpr (kInputs == 1) {
        shared.inputs[row][word] = bits_of_float(first);
      } else {
        shared.inputs[row][word] =
            pack_bf16(first, is_present && k + 1 < inputs.end ? x[k + 1] : 0.0f);
      }
    }
    wait_copies();
    sync_threads();
  }
  template <uint32_t kInputs>
  PL_DEVICE static void load_weights(const LoraMatrix& a, uint32_t panel, Inputs inputs,
                                     Shared& shared) {
    constexpr uint32_t kQuads = uint32_t{kPanelWidth} / 4;
    const int64_t first_column = int64_t{panel} * kPanelWidth;
    if (a.type == LoraType::f16) {
      for (uint32_t i = thread_index(); i < kLoraWords * kPanelWidth; i += kThreads) {
        const uint32_t word = i / kPanelWidth, column = i % kPanelWidth, k = inputs.begin + word;
        const float weight =
            k < inputs.end ? plain_element<F16>(a.panels, k, first_column + column) : 0.0f;
        shared.weights[word][column] = bits_of_float(weight);
      }
      return;
    }
    const std::byte* const from = a.panels.panel_of(first_column);
    if (a.type == LoraType::bf16) return load_stages(from, a.panels.stage_bytes, inputs, shared);
    for (uint32_t i = thread_index(); i < kLoraWords * kQuads; i += kThreads) {
      const uint32_t word = i / kQuads, column = i % kQuads * 4;
      const uint32_t k = inputs.begin + kInputs * word;
      const bool is_present = k < inputs.end;
      const int64_t place = int64_t{is_present ? k / kInputs : 0} * kPanelWidth + column;
      copy_async(&shared.weights[word][column], from + place * sizeof(uint32_t), is_present);
    }
    commit_copies();
  }

  // Stages of bfloat16 as they stand in the panel, from the one of the first input on.
  PL_DEVICE static void load_stages(const std::byte* panel, int64_t stage_bytes, Inputs inputs,
                                    Shared& shared) {
    constexpr uint32_t kChunksOfStage = kStageBytes / sizeof(Words4);
    const std::byte* const from = panel + inputs.begin / kStageInputs * stage_bytes;
    for (uint32_t i = thread_index(); i < kLoraStages * kChunksOfStage; i += kThreads) {
      const bool is_present = inputs.begin + i / kChunksOfStage * kStageInputs < inputs.end;
      const int64_t place = i / kChunksOfStage * stage_bytes + i % kChunksOfStage * sizeof(Words4);
      copy_async(&shared.weights[0][0] + i * 4, from + (is_present ? place : 0), is_present);
    }
    commit_copies();
  }

  PL_DEVICE static void multiply_bf16(const Params& p, const LoraShrink& shrink, uint32_t panel,
                                      Shared& shared) {
    constexpr uint32_t kInputs = 2 * kLoraWords;
    const Inputs segment = segment_of(p);
    const auto* const stages = reinterpret_cast<const std::byte*>(shared.weights);
    PanelSums sums;
    sums.clear();
    for (uint32_t begin = segment.begin; begin < segment.end; begin += kInputs) {
      load<2>(p, shrink, panel, {begin, segment.end}, shared);
      if (warp_index() > 0) continue;
      for (uint32_t k = 0; k < kInputs && begin + k < segment.end; k += kStepInputs) {
        const uint32_t word = k / 2 + 2 * lane_in_group();
        const uint32_t* const row = shared.inputs[lane_group()];
        const uint32_t inputs[2] = {row[word], row[word + 1]};
        sums.multiply(stages + k / kStageInputs * kStageBytes, k / kStepInputs % kStageSteps,
                      inputs);
      }
    }
    if (warp_index() > 0) return;
    sums.for_each([&](uint32_t row, uint32_t column, float sum) {
      write(p, shrink, p.first_of_tile() + row, panel * uint32_t{kPanelWidth} + column, sum);
    });
  }

  PL_DEVICE static void multiply_floats(const Params& p, const LoraShrink& shrink, uint32_t panel,
                                        Shared& shared) {
    constexpr uint32_t kRowsOfWarp = kLoraRows / kLoraWarps;
    const Inputs segment = segment_of(p);
    float sums[kRowsOfWarp] = {};
    for (uint32_t begin = segment.begin; begin < segment.end; begin += kLoraWords) {
      load<1>(p, shrink, panel, {begin, segment.end}, shared);
      const uint32_t left = segment.end - begin;
      const uint32_t count = left < kLoraWords ? left : kLoraWords;
      for (uint32_t k = 0; k < count; ++k) {
        const float weight = float_of_bits(shared.weights[k][lane_index()]);
        PL_UNROLL
        for (uint32_t i = 0; i < kRowsOfWarp; ++i) {
          const float x = float_of_bits(shared.inputs[warp_index() + i * kLoraWarps][k]);
          sums[i] = fused_multiply_add(x, weight, sums[i]);
        }
      }
    }
    PL_UNROLL
    for (uint32_t i = 0; i < kRowsOfWarp; ++i) {
      write(p, shrink, p.first_of_tile() + warp_index() + i * kLoraWarps,
            panel * uint32_t{kPanelWidth} + lane_index(), sums[i]);
    }
  }

  PL_DEVICE static void write(const Params& p, const LoraShrink& shrink, int64_t row, uint32_t rank,
                              float sum) {
    if (rank >= shrink.num_ranks || !shrink.rows.contains(row) || row >= p.end_row()) return;
    p.inner_of(block_index().z, row)[shrink.first_inner + rank] = sum;
  }
};

// A block adds to 8 rows (along y of the grid) the products of their inner sums with 32 columns for
// each of its warps (along x) of each matrix of theirs.
struct ExpandLora {
  static constexpr std::string_view kName = "expand_lora";
  static constexpr uint32_t kThreads = kLoraThreads;
  using Params = LoraParams;
  struct Shared {
    float inner[kLoraRows][uint32_t{kSegmentLength} + kPadWords];
  };

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const LoraLists lists = p.own_lists();
    for (uint32_t i = 0; i < lists.num_expands; ++i) {
      const LoraExpand expand = lists.expands[i];
      if (!expand.rows.meets_tile(p.first_of_tile())) continue;
      const auto num_panels =
          static_cast<uint32_t>((expand.num_columns + kPanelWidth - 1) / kPanelWidth);
      if (block_index().x * kLoraWarps >= num_panels) continue;
      load_inner(p, expand, shared);
      uint32_t panel = block_index().x * kLoraWarps + warp_index();
      for (; panel < num_panels; panel += grid_size().x * kLoraWarps) {
        expand.b.type == LoraType::bf16 ? multiply_bf16(p, expand, panel, shared)
                                        : multiply_floats(p, expand, panel, shared);
      }
    }
  }

 private:
  // The sums of K's segments, in ascending order; zero for rows outside the range.
  PL_DEVICE static void load_inner(const Params& p, const LoraExpand& expand, Shared& shared) {
    const uint32_t rank = expand.b.panels.k;
    sync_threads();  // the sums of before have been read
    for (uint32_t i = thread_index(); i < kLoraRows * rank; i += kThreads) {
      const int64_t row = p.first_of_tile() + i / rank;
      float total = 0.0f;
      if (expand.rows.contains(row) && row < p.end_row()) {
        for (uint32_t segment = 0; segment < p.num_segments(); ++segment) {
          total = total + p.inner_of(segment, row)[expand.first_inner + i % rank];
        }
      }
      shared.inner[i / rank][i % rank] = total;
    }
    sync_threads();
  }

  PL_DEVICE static uint32_t pair_of(const float* inner, uint32_t k, uint32_t rank) {
    return pack_bf16(k < rank ? inner[k] : 0.0f, k + 1 < rank ? inner[k + 1] : 0.0f);
  }

  PL_DEVICE static void multiply_bf16(const Params& p, const LoraExpand& expand, uint32_t panel,
                                      const Shared& shared) {
    const uint32_t rank = expand.b.panels.k;
    const std::byte* const from = expand.b.panels.panel_of(int64_t{panel} * kPanelWidth);
    const float* const inner = shared.inner[lane_group()];
    PanelSums sums;
    sums.clear();
    for (uint32_t first = 0; first < rank; first += kStepInputs) {
      const uint32_t own = first + 4 * lane_in_group();
      const uint32_t inputs[2] = {pair_of(inner, own, rank), pair_of(inner, own + 2, rank)};
      sums.multiply(from + first / kStageInputs * expand.b.panels.stage_bytes,
                    first / kStepInputs % kStageSteps, inputs);
    }
    sums.for_each([&](uint32_t row, uint32_t column, float sum) {
      add(p, expand, p.first_of_tile() + row, int64_t{panel} * kPanelWidth + column, sum);
    });
  }

  PL_DEVICE static float element(const LoraMatrix& b, uint32_t k, int64_t column) {
    return b.type == LoraType::f16 ? plain_element<F16>(b.panels, k, column)
                                   : plain_element<float>(b.panels, k, column);
  }

  PL_DEVICE static void multiply_floats(const Params& p, const LoraExpand& expand, uint32_t panel,
                                        const Shared& shared) {
    const int64_t column = int64_t{panel} * kPanelWidth + lane_index();
    float sums[kLoraRows] = {};
    for (uint32_t k = 0; k < expand.b.panels.k; ++k) {
      const float weight = element(expand.b, k, column);
      PL_UNROLL
      for (uint32_t row = 0; row < kLoraRows; ++row) {
        sums[row] = fused_multiply_add(shared.inner[row][k], weight, sums[row]);
      }
    }
    PL_UNROLL
    for (uint32_t row = 0; row < kLoraRows; ++row) {
      add(p, expand, p.first_of_tile() + row, column, sums[row]);
    }
  }

  // A product's sum is added to zero before it is added to the output.
  PL_DEVICE static void add(const Params& p, const LoraExpand& expand, int64_t row, int64_t column,
                            float sum) {
    if (column >= expand.num_columns || !expand.rows.contains(row) || row >= p.end_row()) return;
    float* const out = p.out.row(row) + expand.first_column + column;
    *out = *out + (0.0f + sum);
  }
};

}  // namespace paceline::cuda
