#include <array>
#include <string>

#include "base/state_chunk.h"
#include "bench/gpu/row_check.h"
#include "tests/kernels/recurrent_inputs.h"

namespace paceline {
namespace {

// `run(begin, end, block, saves)` computes rows whose state stands in a block.
template <class Run>
void check_ways(RowCheck& rows, const std::string& name, const Tensor& out, const Run& run) {
  rows.check(name + " in cuts", out, [&](RowRange range) {
    if (range.begin > 0) run(0, range.begin, 0, std::span<const StateSave>());
    run(range.begin, range.end, 0, std::span<const StateSave>());
  });
  rows.check(name + " from a saved state", out, [&](RowRange range) {
    const int64_t saved = range.begin / kStateChunk * kStateChunk;
    const std::array save{StateSave{.position = saved, .block = 1}};
    if (saved > 0) run(0, range.begin, 0, std::span(save));
    run(saved, range.end, 1, std::span<const StateSave>());
  });
  rows.check(name + " one by one", out, [&](RowRange range) {
    const bool is_whole = range.begin == 0 && range.end == rows.num_rows();
    if (is_whole) return run(0, range.end, 0, std::span<const StateSave>());
    for (int64_t row = 0; row < range.end; ++row) {
      run(row, row + 1, 0, std::span<const StateSave>());
    }
  });
}

}  // namespace

void check_states(cuda::CudaDevice& device, const CheckOptions& options, CheckReport& report) {
  RowCheck rows("states", device, options, report);
  RecurrentOps& ops = *rows.backend().recurrent();
  const DeltaShape delta{.key_heads = 1, .value_heads = 2, .key_dim = 128, .value_dim = 40};
  const DeltaShape wide{.key_heads = 1, .value_heads = 1, .key_dim = 256, .value_dim = 32};
  const DeltaShape sums{
      .key_heads = 1, .value_heads = 3, .key_dim = 24, .value_dim = 16, .corrects = false};
  for (const auto& [name, shape] : {std::pair{"delta_rule", delta},
                                    {"delta_rule of 256 elements", wide},
                                    {"delta_rule of sums", sums}}) {
    const DeltaRowInputs in(rows.memory(), shape, rows.num_rows(), 2, 1);
    check_ways(rows, name, in.out.view,
               [&](int64_t begin, int64_t end, int32_t block, std::span<const StateSave> saves) {
                 in.run(ops, begin, end, block, saves);
               });
  }
  const ConvolutionRowInputs in(rows.memory(), {.channels = 300, .taps = 4}, rows.num_rows(), 2, 2);
  check_ways(rows, "short_convolution", in.out.view,
             [&](int64_t begin, int64_t end, int32_t block, std::span<const StateSave> saves) {
               in.run(ops, begin, end, block, saves);
             });
}

}  // namespace paceline
