// Products of up to 8 rows with quantised weights: a block is one warp, which turns the codes of 32
// columns into bfloat16 in registers.
//
// A word of a plane has the codes of a column's next 4 inputs, and of more where they are narrower
// than 8 bits, so that 16 bytes are 4 columns of inputs 4 q to 4 q + 3: a lane's part of a step
// (panel_products.h). The next kSteps steps are loaded while these are multiplied: 2 KB of 8-bit
// codes for each warp. 208 registers leave 9 warps to a multiprocessor, so 18 KB are in flight, or
// 9 KB of 4-bit codes, where 23 KB would keep its share of an H200's memory busy (matmul_few.h): a
// kernel without the high planes, offsets and multiples that most formats lack would need fewer.
// A weight costs about 4 instructions of a lane (extract, convert, multiply and add, half of a
// rounding): 132 multiprocessors at 1.7 GHz make 7e12 weights a second. Not measured.
#pragma once

#include "kernels/cuda/code/matmul_few.h"

namespace paceline::cuda {

struct FewRowsOfGroupsParams {
  GroupedPanels weights;
  const float* bias = nullptr;  // of all columns of the matrix
  int64_t first_column = 0;
  int64_t num_columns = 0;
  ConstRows x;
  int64_t num_rows = 0;
  Rows out;
  SplitSums split;
};

// What a lane loads for one step: the codes of 4 columns and 4 inputs, what turns them into
// elements, and those inputs of a row.
struct GroupStep {
  struct alignas(8) Halves {
    F16 of[4];
  };
  struct alignas(4) Multiples {
    int8_t of[4];
  };
  Words4 low, high;
  Halves scales, offsets;
  Multiples scale_multiples, offset_multiples;
  float inputs[4];
};

// A lane's loads and products in a panel: columns 4 g to 4 g + 3, inputs 4 t to 4 t + 3 of a step,
// row g.
class GroupStream {
 public:
  static constexpr uint32_t kSteps = 4;  // at once
  using Steps = GroupStep[kSteps];

  PL_DEVICE GroupStream(const FewRowsOfGroupsParams& p, int64_t panel)
      : panels_(p.weights),
        panel_(reinterpret_cast<const uint8_t*>(p.weights.first + panel * p.weights.panel_bytes)),
        column_(4 * lane_group()),
        factors_(load_as<Floats4>(panel_ + column_ * sizeof(float))),
        x_(lane_group() < p.num_rows ? p.x.row(lane_group()) : nullptr) {}

  // Steps from input `first` on, as far as they begin before `end`.
  PL_DEVICE void load(uint32_t first, uint32_t end, Steps& steps) const {
    PL_UNROLL
    for (uint32_t i = 0; i < kSteps; ++i) {
      if (first + i * kStepInputs < end) load_step(first + i * kStepInputs, steps[i]);
    }
  }

  PL_DEVICE void multiply(uint32_t first, uint32_t end, const Steps& steps,
                          PanelSums<1>& sums) const {
    PL_UNROLL
    for (uint32_t i = 0; i < kSteps; ++i) {
      const uint32_t k = first + i * kStepInputs;
      if (k >= end) break;
      const float* const x = steps[i].inputs;
      const uint32_t inputs[1][2] = {{pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3])}};
      sums.multiply(elements(k, steps[i]), inputs);
    }
  }

 private:
  PL_DEVICE uint32_t quad_of(uint32_t k) const {
    return (k & ((1u << panels_.group_bits) - 1)) / 4 + lane_in_group();
  }
  PL_DEVICE static Words4 load_plane(const uint8_t* plane, uint32_t width, uint32_t quad,
                                     uint32_t column) {
    return load_as<Words4>(plane + (quad * width / 8 * kPanelWidth + column) * 4);
  }

  PL_DEVICE void load_step(uint32_t k, GroupStep& step) const {
    const uint32_t group = k >> panels_.group_bits, record = group >> panels_.record_bits;
    const uint32_t index = group & ((1u << panels_.record_bits) - 1);
    const uint8_t* const scales =
        panel_ + kPanelWidth * 4 + int64_t{record} * int64_t{panels_.record_bytes};
    constexpr uint32_t kHalfBytes = kPanelWidth * 2;
    step.scales = load_as<GroupStep::Halves>(scales + column_ * 2);
    if (panels_.has_offsets) {
      step.offsets = load_as<GroupStep::Halves>(scales + kHalfBytes + column_ * 2);
    }
    if (panels_.multiple_bytes > 0) {
      const uint8_t* const multiples =
          scales + panels_.scale_bytes + index * panels_.multiple_bytes + column_;
      step.scale_multiples = load_as<GroupStep::Multiples>(multiples);
      if (panels_.has_offsets) {
        step.offset_multiples = load_as<GroupStep::Multiples>(multiples + kPanelWidth);
      }
    }
    const uint8_t* const codes = scales + panels_.scale_bytes +
                                 (panels_.multiple_bytes << panels_.record_bits) +
                                 index * panels_.code_bytes;
    const uint32_t quad = quad_of(k);
    step.low = load_plane(codes, panels_.low_width, quad, column_);
    if (panels_.high_width > 0) {
      const uint32_t low_bytes =
          ((uint32_t{kPanelWidth} * panels_.low_width) << panels_.group_bits) / 8;
      step.high = load_plane(codes + low_bytes, panels_.high_width, quad, column_);
    }
    PL_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      step.inputs[i] = x_ != nullptr ? x_[k + 4 * lane_in_group() + i] : 0.0f;
    }
  }

  // A number of a column, from its factor (load_group()).
  PL_DEVICE float number(const GroupStep::Halves& halves, const GroupStep::Multiples& multiples,
                         int column) const {
    const float shared = to_float(halves.of[column]) * factors_.of[column];
    if (panels_.multiple_bytes == 0) return shared;
    return shared * static_cast<float>(multiples.of[column]);
  }

  PL_DEVICE PanelStep elements(uint32_t k, const GroupStep& step) const {
    const uint32_t quad = quad_of(k);
    const uint32_t low_shift = quad * panels_.low_width % 8;
    const uint32_t high_shift = quad * panels_.high_width % 8;
    const uint32_t low_mask = (1u << panels_.low_width) - 1;
    const uint32_t high_mask = (1u << panels_.high_width) - 1;
    PanelStep made;
    PL_UNROLL
    for (int column = 0; column < 4; ++column) {
      const float scale = number(step.scales, step.scale_multiples, column);
      const float offset = panels_.has_offsets ? number(step.offsets, step.offset_multiples, column)
                                               : -panels_.zero_point * scale;
      const auto element = [&](uint32_t input) {
        uint32_t code = step.low.words[column] >> (8 * input + low_shift) & low_mask;
        if (panels_.high_width > 0) {
          code |= (step.high.words[column] >> (8 * input + high_shift) & high_mask)
                  << panels_.low_width;
        }
        return fused_multiply_add(scale, static_cast<float>(code), offset);
      };
      made.half[column / 2].words[column % 2] = pack_bf16(element(0), element(1));
      made.half[column / 2].words[2 + column % 2] = pack_bf16(element(2), element(3));
    }
    return made;
  }

  const GroupedPanels& panels_;
  const uint8_t* panel_;
  uint32_t column_;
  Floats4 factors_;
  const float* x_;
};

// A panel along x of the grid; along z the segments where each has a block of its own.
struct MatmulFewRowsOfGroups {
  static constexpr std::string_view kName = "few_rows_of_groups";
  static constexpr uint32_t kThreads = kWarpLanes;
  using Params = FewRowsOfGroupsParams;
  struct Shared {
    uint32_t is_last;
  };
  using Sums = PanelSumsOf<1, 1>;

  PL_DEVICE static void run(const Params& p, Shared& shared) {
    const int64_t panel = block_index().x;
    const uint32_t inputs = p.weights.k, segment = block_index().z;
    const bool is_split = p.split.num_segments > 0;
    const uint32_t begin = is_split ? segment * uint32_t{kSegmentLength} : 0;
    const uint32_t left = inputs - begin;
    const uint32_t end =
        is_split && left > kSegmentLength ? begin + uint32_t{kSegmentLength} : inputs;
    Sums totals;
    multiply(GroupStream(p, p.first_column / kPanelWidth + panel), begin, end, totals);
    if (is_split && !add_segments(p.split, panel, segment, kThreads, totals, shared.is_last)) {
      return;
    }
    write(p, panel, totals);
  }

 private:
  PL_DEVICE static void multiply(const GroupStream& stream, uint32_t begin, uint32_t end,
                                 Sums& totals) {
    constexpr uint32_t kInputs = GroupStream::kSteps * kStepInputs;
    totals.clear();
    Sums sums;
    sums.clear();
    GroupStream::Steps steps{}, next{};
    stream.load(begin, end, steps);
    for (uint32_t first = begin; first < end; first += kInputs) {
      stream.load(first + kInputs, end, next);
      stream.multiply(first, end, steps, sums.of_panel[0]);
      PL_UNROLL
      for (uint32_t i = 0; i < GroupStream::kSteps; ++i) steps[i] = next[i];
      if ((first + kInputs) % kSegmentLength > 0 && first + kInputs < end) continue;
      totals.add(sums);
      sums.clear();
    }
  }

  PL_DEVICE static void write(const Params& p, int64_t panel, const Sums& totals) {
    const PanelColumns columns{.weights = {}, .bias = p.bias, .first = p.first_column};
    const int64_t place = columns.place(panel, 4 * lane_group());
    for_each_row<1>([&](int row, int parity, int tile) {
      if (row >= p.num_rows) return;
      write_columns(columns, place, p.num_columns, totals.of_panel[0].columns(parity, tile),
                    p.out.row(row));
    });
  }
};

}  // namespace paceline::cuda
