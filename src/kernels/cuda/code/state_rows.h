// Rows of a batch whose sequence has a state, as kernels take them (StateSlices of
// kernels/operands.h).
#pragma once

#include "base/state_chunk.h"
#include "kernels/cuda/code/device_code.h"

namespace paceline::cuda {

constexpr int kChunkRows = kStateChunk;

// The first position of the chunk that has `position`.
PL_DEVICE int64_t chunk_start(int64_t position) { return position / kStateChunk * kStateChunk; }

// A StateSlice. That of an empty decode slot has no row, and its output is 0.
struct StateRows {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  int32_t block = 0;
  int32_t open_block = 0;
  int32_t first_save = 0;
  int32_t num_saves = 0;

  PL_DEVICE int64_t end() const { return first_position + num_rows; }
  // Whether its rows reach a position at which a state is saved.
  PL_DEVICE bool reach(int64_t position) const {
    return position > first_position && position <= end();
  }
  PL_DEVICE int64_t row_of(int64_t position) const { return first_row + position - first_position; }
  // The first position of the chunk that these rows leave open, or of this slice in it.
  PL_DEVICE int64_t first_kept() const {
    const int64_t open = chunk_start(end());
    return open > first_position ? open : first_position;
  }
};

// A StateSave.
struct SavePoint {
  int64_t position = 0;
  int32_t block = 0;
};

struct StateBlocks {
  const StateRows* slices = nullptr;
  const SavePoint* saves = nullptr;
  float* first = nullptr;
  int64_t stride = 0;  // of a state
  float* first_open = nullptr;
  int64_t open_stride = 0;  // of a block of open rows

  PL_DEVICE float* state(int32_t block) const { return first + block * stride; }
  PL_DEVICE float* open_rows(int32_t block) const { return first_open + block * open_stride; }
};

}  // namespace paceline::cuda
