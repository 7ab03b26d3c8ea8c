// For any tensors and any quantisation in config.json, each expert's matrices and biases can be
// read from stacks in MXFP4, of MLX or plain, as numbers and as codes, or there is an Error.
//
// The input is {"config": ..., "tensors": {NAME: {"dtype": "U8", "shape": [2, 4, 1, 16]}, ...}}.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
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
#include "weights/expert_checkpoint.h"
#include "weights/mlx_checkpoint.h"
#include "weights/mlx_quantization.h"
#include "weights/mxfp4_checkpoint.h"

namespace {

using namespace paceline;

void require(bool condition) {
  if (!condition) std::abort();
}

// Reads first, middle and last rows.
void read_rows(const GroupedRows& rows) {
  const auto length = static_cast<size_t>(rows.row_length());
  const Grouping grouping = rows.grouping();
  const size_t num_groups = length / static_cast<size_t>(grouping.group_size);
  std::vector<float> values(length), scales(num_groups), offsets(num_groups);
  std::vector<uint8_t> codes(length);
  for (const int64_t row : {int64_t{0}, rows.num_rows() / 2, rows.num_rows() - 1}) {
    rows.read_values(row, values);
    rows.read_codes(row, codes, scales, offsets);
    for (const uint8_t code : codes) require(code < (1 << grouping.bits));
  }
}

void check_checkpoint(Checkpoint& checkpoint) {
  const std::vector<CheckpointEntry>& entries = checkpoint.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const CheckpointEntry& entry = entries[i];
    require(i == 0 || entries[i - 1].name < entry.name);
    require(checkpoint.contains(entry.name));
    require(checkpoint.shape_of(entry.name) == entry.shape);
    const Tensor tensor = checkpoint.read(entry.name, entry.shape);
    require(tensor.shape() == entry.shape && tensor.is_contiguous());
    if (const auto rows = checkpoint.read_grouped(entry.name, entry.shape)) {
      require(rows->num_rows() * rows->row_length() == tensor.num_elements());
      read_rows(*rows);
    }
    checkpoint.release(entry.name);
  }
}

void run(const Json& config, std::vector<CheckpointEntry> entries) {
  static ThreadPool threads(1);
  Memory memory;
  const auto quantization = MlxQuantization::find(config, "input");
  fuzz::HeldCheckpoint source(std::move(entries));
  std::unique_ptr<Checkpoint> unpacked;
  if (quantization) {
    unpacked = std::make_unique<MlxCheckpoint>(source, *quantization, memory, threads);
  } else if (has_mxfp4(config, "input")) {
    unpacked = std::make_unique<Mxfp4Checkpoint>(source, memory, threads);
  }
  Checkpoint& whole = unpacked ? *unpacked : source;
  ExpertCheckpoint checkpoint(whole, memory, threads);
  check_checkpoint(checkpoint);
  require(memory.stats().active_bytes == 0);
}

constexpr std::string_view kWords[] = {"quantization",
                                       "quantization_config",
                                       "quant_method",
                                       "mxfp4",
                                       "group_size",
                                       "bits",
                                       "config",
                                       "tensors",
                                       "dtype",
                                       "shape",
                                       "U8",
                                       "U32",
                                       "F32",
                                       "BF16",
                                       "a.experts.gate_up_proj",
                                       "a.experts.gate_up_proj_blocks",
                                       "a.experts.gate_up_proj_scales",
                                       "a.experts.gate_up_proj_bias",
                                       "a.experts.down_proj",
                                       "a.experts.down_proj_blocks",
                                       "a.experts.down_proj_scales",
                                       "a.experts.down_proj_bias",
                                       "a.experts.0.up_proj.weight",
                                       "a.experts.up_proj.weight",
                                       "a.input_linear.weight",
                                       "a.output_linear.weight",
                                       "a.switch_mlp.up_proj.weight",
                                       "a.switch_mlp.up_proj.scales",
                                       "a.switch_mlp.up_proj.biases"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  fuzz::run_on_checkpoint(bytes, size, run);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size,
                                          unsigned seed) {
  return fuzz::mutate_json(kWords, 10, bytes, size, max_size, seed);
}
