// Mamba's selective scan (RecurrentOps::selective_scan): a thread for each channel, which steps its
// state row by row.
#pragma once

#include "kernels/cuda/code/math.h"
#include "kernels/cuda/code/rows.h"
#include "kernels/cuda/code/state_rows.h"

namespace paceline::cuda {

constexpr uint32_t kScanThreads = 64;
constexpr int64_t kMostScanStates = 64;

// The states of a block's channels, an element of all of them after another.
struct ScanStates {
  float elements[kMostScanStates][kScanThreads];
};

struct ScanParams {
  StateBlocks states;
  ConstRows x;
  ConstRows steps;
  ConstRows b;
  ConstRows c;
  Rows out;  // may be x
  ConstRows rates;
  const float* skip = nullptr;
  int64_t channels = 0;
  int64_t state_size = 0;
  int64_t padded_channels = 0;
  int64_t padded_state = 0;
  int64_t inputs_begin = 0;  // in open rows, as ScanShape has them
  int64_t b_begin = 0;

  PL_DEVICE float* kept_b(int32_t open_block, int64_t row) const {
    return states.open_rows(open_block) + b_begin + row * padded_state;
  }
};

class ScanChannelPart {
 public:
  PL_DEVICE ScanChannelPart(const ScanParams& params, ScanStates& states, int64_t channel)
      : p_(params),
        s_(states),
        rows_(params.states.slices[block_index().x]),
        channel_(channel),
        open_(params.states.open_rows(rows_.open_block)) {}

  PL_DEVICE void run() {
    const float* const before = p_.states.state(rows_.block);
    const int64_t chunk = chunk_start(rows_.first_position);
    PL_ROLLED
    for (int64_t n = 0; n < p_.state_size; ++n) {
      state(n) = chunk > 0 ? before[n * p_.padded_channels + channel_] : 0.0f;
    }
    PL_ROLLED
    for (int64_t row = 0; row < rows_.first_position - chunk; ++row) {
      const float* const b = p_.kept_b(rows_.open_block, row);
      step(*kept(0, row), *kept(p_.inputs_begin, row), b);
    }
    PL_ROLLED
    for (int64_t position = rows_.first_position; position < rows_.end(); ++position) {
      run_row(position);
    }
  }

 private:
  PL_DEVICE float& state(int64_t n) const { return s_.elements[n][thread_index()]; }
  PL_DEVICE float* kept(int64_t begin, int64_t row) const {
    return open_ + begin + row * p_.padded_channels + channel_;
  }

  PL_DEVICE void step(float step, float input, const float* b) const {
    PL_ROLLED
    for (int64_t n = 0; n < p_.state_size; ++n) {
      const float decay = exponential(-p_.rates.row(n)[channel_] * step);
      state(n) = fused_multiply_add(decay, state(n), input * b[n]);
    }
  }

  PL_DEVICE void run_row(int64_t position) const {
    const int64_t row = rows_.row_of(position), in_chunk = position - chunk_start(position);
    const float x = p_.x.row(row)[channel_], own = p_.steps.row(row)[channel_];
    *kept(0, in_chunk) = own;
    *kept(p_.inputs_begin, in_chunk) = own * x;
    step(own, own * x, p_.b.row(row));
    float sum = p_.skip[channel_] * x;
    const float* const c = p_.c.row(row);
    PL_ROLLED
    for (int64_t n = 0; n < p_.state_size; ++n) sum = fused_multiply_add(c[n], state(n), sum);
    p_.out.row(row)[channel_] = sum;
    if (in_chunk + 1 < kStateChunk) return;
    write_state(rows_.block);
    for (int32_t i = 0; i < rows_.num_saves; ++i) {
      const SavePoint save = p_.states.saves[rows_.first_save + i];
      if (save.position == position + 1) write_state(save.block);
    }
  }

  PL_DEVICE void write_state(int32_t block) const {
    PL_ROLLED
    for (int64_t n = 0; n < p_.state_size; ++n) {
      p_.states.state(block)[n * p_.padded_channels + channel_] = state(n);
    }
  }

  const ScanParams& p_;
  ScanStates& s_;
  StateRows rows_;
  int64_t channel_;
  float* open_;
};

// Slices along x of the grid, channels along y.
struct SelectiveScan {
  static constexpr std::string_view kName = "selective_scan";
  static constexpr uint32_t kThreads = kScanThreads;
  using Params = ScanParams;
  using Shared = ScanStates;

  PL_DEVICE static void run(const Params& params, Shared& shared) {
    const int64_t channel = int64_t{block_index().y} * kScanThreads + thread_index();
    if (channel >= params.channels) return;
    const StateRows& rows = params.states.slices[block_index().x];
    if (rows.num_rows > 0) return ScanChannelPart(params, shared, channel).run();
    params.out.row(rows.first_row)[channel] = 0.0f;  // of an empty decode slot
  }
};

// Writes b of the chunks that slices leave open, its rows along y of the grid. Blocks of
// SelectiveScan read the rows kept before, so it overwrites none.
struct KeepScanRows {
  static constexpr std::string_view kName = "keep_scan_rows";
  static constexpr uint32_t kThreads = kScanThreads;
  using Params = ScanParams;
  struct Shared {};

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const StateRows rows = p.states.slices[block_index().x];
    const int64_t row = block_index().y, position = chunk_start(rows.end()) + row;
    if (position < rows.first_position || position >= rows.end()) return;
    for (int64_t n = thread_index(); n < p.state_size; n += kThreads) {
      p.kept_b(rows.open_block, row)[n] = p.b.row(rows.row_of(position))[n];
    }
  }
};

}  // namespace paceline::cuda
