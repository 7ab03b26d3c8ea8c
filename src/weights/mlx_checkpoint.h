// MlxCheckpoint presents matrices quantised by MLX under their plain names.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/affine_rows.h"
#include "weights/forwarding_checkpoint.h"
#include "weights/mlx_quantization.h"

namespace paceline {

// For M.weight [rows, words] of uint32 with M.scales and M.biases [rows, groups] in the source,
// this has only M.weight [rows, row length] of the scales' dtype; likewise for stacks of matrices
// [experts, rows, words], which are read as one matrix of all rows. Every other tensor passes
// through.
class MlxCheckpoint : public UnpackingCheckpoint {
 public:
  // All arguments but `quantization` must outlive it. Throws Error corrupt naming the tensor
  // when a part is missing or its dtype or shape doesn't fit the others.
  MlxCheckpoint(Checkpoint& source, const MlxQuantization& quantization, Memory& memory,
                ThreadPool& threads);

  bool contains(std::string_view name) const override { return find_entry(name) != nullptr; }
  std::optional<Extents> shape_of(std::string_view name) const override;
  // Dequantises to memory of its own.
  Tensor read_tensor(std::string_view name, const Extents& shape, ReadAs as) override;
  std::shared_ptr<const GroupedRows> read_grouped(std::string_view name,
                                                  const Extents& shape) override;
  void release(std::string_view name) override;

 private:
  struct Matrix {
    AffineFormat format;
    std::string scales;  // the names of its other tensors
    std::string biases;
    Extents words_shape;
    Extents scales_shape;
  };

  Matrix matrix_of(const CheckpointEntry& weight, const std::string& module,
                   const MlxQuantization& quantization) const;
  const CheckpointEntry* find_entry(std::string_view name) const;
  const Matrix* find_matrix(std::string_view name, const Extents& shape) const;
  AffineRows rows_of(std::string_view name, const Matrix& matrix);

  std::map<std::string, Matrix, std::less<>> matrices_;  // by the name of their weight
};

}  // namespace paceline
