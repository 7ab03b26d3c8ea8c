// For any quantisation in config.json and any tensors, every matrix can be read as numbers and as
// codes, or there is an Error.
//
// The input is {"config": ..., "tensors": {NAME: {"dtype": "U32", "shape": [2, 4]}, ...}}.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/thread_pool.h"
#include "fuzz/checkpoint_input.h"
#include "fuzz/held_checkpoint.h"
#include "fuzz/json_mutator.h"
#include "fuzz/tensor_list.h"
#include "tensor/memory.h"
#include "weights/mlx_checkpoint.h"
#include "weights/mlx_quantization.h"

namespace {

using namespace paceline;

void require(bool condition) {
  if (!condition) std::abort();
}

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Checks that codes fit their bits, and that values equal those of the plain matrix.
void check_rows(const GroupedRows& rows, const Tensor& plain) {
  require(plain.rank() == 2 && rows.num_rows() == plain.size(0));
  require(rows.row_length() == plain.size(1) && rows.value_dtype() == plain.dtype());
  const auto length = static_cast<size_t>(rows.row_length());
  const size_t num_bits = rows.stored_bytes().front().size() * 8;
  const auto num_codes = static_cast<size_t>(plain.num_elements());
  require(num_bits % num_codes == 0);
  require(is_affine_bits(static_cast<int64_t>(num_bits / num_codes)));
  const Grouping grouping = rows.grouping();
  const size_t num_groups = length / static_cast<size_t>(grouping.group_size);
  std::vector<float> values(length), scales(num_groups), offsets(num_groups);
  std::vector<uint8_t> codes(length);
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    rows.read_values(row, values);
    rows.read_codes(row, codes, scales, offsets);
    for (const uint8_t code : codes) require(code < (1 << grouping.bits));
    with_float_dtype(plain.dtype(), [&]<class T>() {
      const T* const expected = plain.row<T>(row);
      for (size_t i = 0; i < length; ++i) require(same(values[i], to_float(expected[i])));
    });
  }
}

void check_checkpoint(MlxCheckpoint& checkpoint) {
  const std::vector<CheckpointEntry>& entries = checkpoint.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const CheckpointEntry& entry = entries[i];
    require(i == 0 || entries[i - 1].name < entry.name);
    require(checkpoint.contains(entry.name));
    require(checkpoint.shape_of(entry.name) == entry.shape);
    const Tensor tensor = checkpoint.read(entry.name, entry.shape);
    require(tensor.dtype() == entry.dtype && tensor.shape() == entry.shape);
    if (const auto rows = checkpoint.read_grouped(entry.name, entry.shape)) {
      check_rows(*rows, tensor);
    }
    checkpoint.release(entry.name);
  }
}

void run(const Json& config, std::vector<CheckpointEntry> entries) {
  static ThreadPool threads(1);
  const auto quantization = MlxQuantization::find(config, "input");
  if (!quantization) return;
  Memory memory;
  fuzz::HeldCheckpoint source(std::move(entries));
  MlxCheckpoint checkpoint(source, *quantization, memory, threads);
  check_checkpoint(checkpoint);
  require(memory.stats().active_bytes == 0);
}

constexpr std::string_view kWords[] = {"quantization",
                                       "quantization_config",
                                       "quant_method",
                                       "group_size",
                                       "bits",
                                       "mode",
                                       "affine",
                                       "mxfp4",
                                       "config",
                                       "tensors",
                                       "dtype",
                                       "shape",
                                       "U32",
                                       "F32",
                                       "F16",
                                       "BF16",
                                       "a",
                                       "b.c",
                                       "a.weight",
                                       "a.scales",
                                       "a.biases",
                                       "b.c.weight",
                                       "b.c.scales",
                                       "b.c.biases",
                                       "norm.weight",
                                       ".weight",
                                       ".scales"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  fuzz::run_on_checkpoint(bytes, size, run);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  return fuzz::mutate_json(kWords, 10, bytes, size, max_size, seed);
}
