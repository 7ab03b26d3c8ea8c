// Causal convolutions of a few taps, whose states are inputs (ConvolutionShape of
// kernels/recurrent.h): a thread for each channel.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/state_rows.h"

namespace paceline::cuda {

// Rows that a block convolves.
constexpr int64_t kConvolvedRows = 16;

struct ConvolutionPiece {
  int32_t slice = 0;
  int32_t first = 0;  // of the slice's rows
};

struct ConvolutionParams {
  ConstRows x;
  StateBlocks states;
  int64_t channels = 0;
  int64_t num_taps = 0;
  int64_t padded_channels = 0;
  // Of ConvolveRows alone.
  const ConvolutionPiece* pieces = nullptr;  // null: each slice is one
  ConstRows taps;
  const float* bias = nullptr;  // may be null
  Rows out;

  // Where a state has the inputs of `position`, before the chunk that begins at `chunk`.
  PL_DEVICE float* before(int32_t block, int64_t chunk, int64_t position) const {
    return states.state(block) + (position - chunk + num_taps - 1) * padded_channels;
  }
  // Where those of a position of that chunk are kept while it is open.
  PL_DEVICE float* kept(int32_t open_block, int64_t chunk, int64_t position) const {
    return states.open_rows(open_block) + (position - chunk) * padded_channels;
  }
  // The inputs of a position of the slice, or before it.
  PL_DEVICE const float* inputs(const StateRows& rows, int64_t position) const {
    if (position >= rows.first_position) return x.row(rows.row_of(position));
    const int64_t chunk = chunk_start(rows.first_position);
    return position < chunk ? before(rows.block, chunk, position)
                            : kept(rows.open_block, chunk, position);
  }
};

// Writes what a slice's block and those of its saves keep of a channel of x.
struct KeptInputs {
  const ConvolutionParams& p;
  const StateRows& rows;
  int64_t channel;

  PL_DEVICE void write() const {
    const int64_t open = chunk_start(rows.end());
    for (int32_t i = 0; i < rows.num_saves; ++i) {
      const SavePoint save = p.states.saves[rows.first_save + i];
      if (rows.reach(save.position)) write_before(save.position, save.block);
    }
    if (open > rows.first_position) write_before(open, rows.block);
    PL_ROLLED
    for (int64_t position = rows.first_kept(); position < rows.end(); ++position) {
      p.kept(rows.open_block, open, position)[channel] = p.inputs(rows, position)[channel];
    }
  }

 private:
  // In ascending positions, as those of the slice's own block move to the front.
  PL_DEVICE void write_before(int64_t chunk, int32_t block) const {
    const int64_t first = chunk - p.num_taps + 1;
    PL_ROLLED
    for (int64_t position = first > 0 ? first : 0; position < chunk; ++position) {
      p.before(block, chunk, position)[channel] = p.inputs(rows, position)[channel];
    }
  }
};

// Its loops are rolled: the addresses of unrolled ones spill registers.
struct ConvolveRows {
  static constexpr std::string_view kName = "convolve_rows";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ConvolutionParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const auto index = static_cast<int32_t>(block_index().x);
    const ConvolutionPiece piece = p.pieces != nullptr ? p.pieces[index] : ConvolutionPiece{index};
    const StateRows rows = p.states.slices[piece.slice];
    if (rows.num_rows == 0) return clear(p, rows.first_row);
    const int64_t begin = rows.first_position + piece.first;
    const int64_t end = begin + kConvolvedRows < rows.end() ? begin + kConvolvedRows : rows.end();
    for_each_column(p.channels, [&](int64_t channel) {
      PL_ROLLED
      for (int64_t position = begin; position < end; ++position) {
        float sum = p.bias != nullptr ? p.bias[channel] : 0.0f;
        const int32_t taps = static_cast<int32_t>(p.num_taps);
        PL_ROLLED
        for (int32_t j = 0; j < taps; ++j) {
          const int64_t from = position - taps + 1 + j;
          if (from < 0) continue;
          sum = fused_multiply_add(p.taps.row(j)[channel], p.inputs(rows, from)[channel], sum);
        }
        p.out.row(rows.row_of(position))[channel] = sum;
      }
      // Of more rows other blocks may still read what the slice's block has.
      if (rows.num_rows == 1) KeptInputs{p, rows, channel}.write();
    });
  }

 private:
  PL_DEVICE static void clear(const Params& p, int64_t row) {
    for_each_column(p.channels, [&](int64_t channel) { p.out.row(row)[channel] = 0.0f; });
  }
};

// Writes what the blocks of slices of several rows, along x of the grid, and those of their saves
// keep of x.
struct KeepInputs {
  static constexpr std::string_view kName = "keep_inputs";
  static constexpr uint32_t kThreads = kElementThreads;
  using Params = ConvolutionParams;
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const StateRows rows = p.states.slices[block_index().x];
    if (rows.num_rows <= 1) return;
    for_each_column(p.channels, [&](int64_t channel) { KeptInputs{p, rows, channel}.write(); });
  }
};

}  // namespace paceline::cuda
