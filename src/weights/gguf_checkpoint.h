// The tensors of a GGUF file under the names of Hugging Face's checkpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensor/memory.h"
#include "weights/checkpoint.h"
#include "weights/gguf_file.h"
#include "weights/gguf_order.h"

namespace paceline {

struct GgufTensorName {
  std::string name;       // as in Hugging Face's checkpoint: "model.norm.weight"
  std::string file_name;  // as in the file: "output_norm.weight"
  // Number of heads whose rotary pairs are interleaved; 0: none. convert_hf_to_gguf.py writes the
  // query and key projections of architecture llama so that the two rows (or elements of a vector)
  // of a pair are neighbours. read() returns the first halves of all pairs, then the second ones.
  int64_t interleaved_heads = 0;
  bool is_row = false;     // a vector of the file is a matrix of one row
  bool is_vector = false;  // a matrix of the file is a vector of all its elements
  bool is_kernel = false;  // a matrix [channels, taps] of the file is [channels, 1, taps]
  // Heads that the file has in turns of their groups; of all rows (or elements of a vector), or of
  // all columns of a matrix.
  std::optional<GgufHeadGroups> row_groups = {};
  std::optional<GgufHeadGroups> column_groups = {};
  // The file's tensor of NVFP4's second scales: one for the matrix, or one for each of a stack;
  // empty: none.
  std::string multipliers = {};
  // In place of a tensor of the file: a float32 number, which its metadata holds.
  std::optional<float> number = {};
  bool has_no_dimension = false;  // of a number; otherwise its shape is [1]
};

// For matrices in block formats read() returns numbers and read_grouped() codes, or null where
// columns are reordered within groups that share a scale. Plain tensors are views of the mapped
// file, unless their rows or columns are reordered.
// Throws Error "FILE: ..." not_found when the file has no tensor of a name, corrupt when two have
// the same name or rows or columns don't divide into heads. `memory` must outlive it.
std::unique_ptr<Checkpoint> make_gguf_checkpoint(std::shared_ptr<const GgufFile> file,
                                                 std::vector<GgufTensorName> names, Memory& memory);

}  // namespace paceline
