#include "tests/kernels/recurrent_cases.h"

#include <fmt/format.h>

#include <limits>

#include "tests/kernels/op_instance.h"
#include "tests/kernels/recurrent_inputs.h"

namespace paceline {
namespace {

// A prompt, then the row behind it.
template <class Inputs, class Shape>
OpInstance prompt_and_row(Memory& memory, const Shape& shape, int64_t rows) {
  return instance(std::make_shared<Inputs>(memory, shape, rows, 1, kCaseSeed),
                  [rows](Backend& backend, const Inputs& in) {
                    if (rows > 1) in.run(*backend.recurrent(), 0, rows - 1, 0);
                    in.run(*backend.recurrent(), rows - 1, rows, 0);
                  });
}

// Each of its chunks reads and writes the states; a row multiplies its head's state twice, and adds
// to it.
OpCase delta_case(const DeltaShape& shape, int64_t rows, CaseSize size) {
  const auto state = static_cast<double>(shape.value_heads * shape.key_dim * shape.value_dim);
  return {.name = fmt::format("delta_rule {} rows {}x{} keys {}x{} values{}{}", rows,
                              shape.key_heads, shape.key_dim, shape.value_heads, shape.value_dim,
                              shape.corrects ? "" : " sums",
                              shape.channel_decay ? " channel decay" : ""),
          .size = size,
          .tolerance = 1e-5,
          .flops = 6.0 * state * static_cast<double>(rows),
          .make = [shape, rows](ThreadPool& /*threads*/, Memory& memory) {
            return prompt_and_row<DeltaRowInputs>(memory, shape, rows);
          }};
}

OpCase convolution_case(const ConvolutionShape& shape, int64_t rows, CaseSize size) {
  return {.name = fmt::format("short_convolution {} rows {} channels {} taps", rows, shape.channels,
                              shape.taps),
          .size = size,
          .tolerance = 1e-6,
          .bytes = 8.0 * static_cast<double>(rows * shape.channels),
          .make = [shape, rows](ThreadPool& /*threads*/, Memory& memory) {
            return prompt_and_row<ConvolutionRowInputs>(memory, shape, rows);
          }};
}

}  // namespace

std::vector<OpCase> recurrent_cases() {
  std::vector<OpCase> cases;
  const DeltaShape small[] = {
      {.key_heads = 1, .value_heads = 1, .key_dim = 8, .value_dim = 8},
      {.key_heads = 2, .value_heads = 4, .key_dim = 24, .value_dim = 40},
      {.key_heads = 1, .value_heads = 2, .key_dim = 128, .value_dim = 128},
      {.key_heads = 1, .value_heads = 1, .key_dim = 200, .value_dim = 20},
      {.key_heads = 1, .value_heads = 6, .key_dim = 20, .value_dim = 24, .corrects = false},
      {.key_heads = 1, .value_heads = 2, .key_dim = 128, .value_dim = 64, .corrects = false}};
  for (const DeltaShape& shape : small) {
    for (const int64_t rows : {1, 16, 53}) {
      cases.push_back(delta_case(shape, rows, CaseSize::small));
    }
  }
  for (const int64_t channels : {5, 300}) {
    for (const int64_t rows : {1, 39}) {
      cases.push_back(convolution_case({.channels = channels, .taps = 4}, rows, CaseSize::small));
    }
  }
  // Layers of a Qwen 3.5 of 0.8B.
  const DeltaShape large{.key_heads = 16, .value_heads = 16, .key_dim = 128, .value_dim = 128};
  DeltaShape channels = large;
  channels.channel_decay = true;
  for (const int64_t rows : {1, 512}) {
    cases.push_back(delta_case(large, rows, CaseSize::large));
    cases.push_back(delta_case(channels, rows, CaseSize::large));
    cases.push_back(convolution_case({.channels = 6144, .taps = 4}, rows, CaseSize::large));
  }
  return cases;
}

}  // namespace paceline
