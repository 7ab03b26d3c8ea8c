// Arguments of the kernels of quantised products; part of kernel_table.h.
#pragma once

#include <cstdint>

#include "kernels/cpu/weight_streams.h"

namespace paceline {

// The panels of a quantised matrix (packed_groups.h), as plain numbers.
struct GroupPanels {
  const void* panels = nullptr;  // panel 0 of the matrix
  int64_t panel_bytes = 0;
  int64_t k = 0;
  int64_t group_size = 0;
  int64_t groups_per_factor = 1;
  int64_t input_length = 0;  // inputs that are rounded with one scale: whole groups
  int bits = 0;
  bool has_offsets = false;
  int zero_point = 0;      // without offsets
  bool is_float8 = false;  // E4M3, which have no integer products
};

// A row of inputs holds the codes [k], then for each group three arrays: the float32 scale of its
// inputs; the int32 that its integer sums start from, a multiple of the sum of its codes; and the
// float32 sum of its inputs. Groups that share a scale have the sum of their codes instead, as
// int16 if they also share factors.
struct GroupTask {
  const void* inputs = nullptr;  // as quantize_row wrote them, [num_rows][input_stride bytes]
  int64_t input_stride = 0;
  int64_t num_rows = 0;
  GroupPanels weights;
  int64_t n = 0;
  int64_t first_panel = 0;
  int64_t last_panel = 0;
  const float* bias = nullptr;  // [n] or nullptr
  float* out = nullptr;         // [num_rows][out_stride]; column 0 is the matrix's
  int64_t out_stride = 0;
  void* scratch = nullptr;  // of this thread, KernelTable::group_scratch_bytes()
  // Whether unpacking codes of 4 bits for every tile beats widening them once.
  bool unpacks_freely = false;
  WeightStreams streams;  // of a few rows
  // The panels that the same thread reads after this task's, prefetched towards the end of it; by
  // default those behind them in memory.
  const void* next_panels = nullptr;
};

}  // namespace paceline
