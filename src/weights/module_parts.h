// ModuleParts is the tensors of one quantised matrix in a checkpoint, by what follows their
// module's name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/scale_grid.h"
#include "weights/torchao_tensor.h"

namespace paceline {

// A part that holds scales, and how they are laid out.
struct ScalePart {
  std::string part;
  ScaleLayout layout;
  std::optional<DType> bytes_are = {};  // the floats that a part of uint8 holds
};

class ModuleParts {
 public:
  // Both must outlive it.
  ModuleParts(Checkpoint& source, std::string module)
      : source_(&source), module_(std::move(module)) {}

  void add(std::string_view part, const CheckpointEntry& entry) { parts_.emplace(part, &entry); }

  const std::string& module() const { return module_; }
  // "ORIGIN: tensor NAME", for messages.
  std::string place_of(std::string_view part) const;
  // The names of all tensors, and their bytes.
  std::vector<std::string> names() const;
  uint64_t stored_bytes() const;
  bool has(std::string_view part) const { return parts_.contains(part); }
  bool has(std::string_view part, DType dtype) const;
  // Throws Error corrupt when the part is missing.
  const CheckpointEntry& at(std::string_view part) const;
  // What the file says of a tensor of torchao's: of no type where it says nothing. Throws Error
  // corrupt.
  TorchaoTensor torchao_tensor() const;
  // The shape [rows, columns] of a part. Throws Error corrupt for another rank, another dtype and
  // for an empty one.
  Extents matrix_shape(std::string_view part, std::span<const DType> dtypes) const;
  // The same; of a part [stacked, rows, columns] that of one matrix of all rows.
  Extents stack_shape(std::string_view part, std::span<const DType> dtypes) const;
  // Throws Error corrupt unless the part has this shape and one of these dtypes.
  void expect(std::string_view part, const Extents& shape, std::span<const DType> dtypes) const;
  [[noreturn]] void corrupt(std::string_view part, std::string_view what) const;
  [[noreturn]] void unsupported(std::string_view part, std::string_view what) const;

  // The layout of scales of a matrix [rows, columns]: one for all, one for each row, or a grid of
  // blocks. The last blocks may be smaller if `block` gives their size, or it is 128.
  ScalePart scales(std::string_view part, const Extents& matrix,
                   const std::optional<Extents>& block, std::optional<DType> bytes_are = {}) const;

  // The part as it is stored; matrices of a stack as one matrix.
  Tensor read(std::string_view part) const;
  Tensor read_matrix(std::string_view part) const;
  // A scale for each row and group of `group_size` columns, in tiles of 128 rows and 4 groups
  // (scale_grid.h).
  ScalePart tiled_scales(std::string_view part, const Extents& matrix, int64_t group_size,
                         std::optional<DType> bytes_are = {}) const;
  // One number for each column of a part; of floats. Throws Error corrupt where one isn't finite.
  std::vector<float> read_factors(std::string_view part, int64_t count) const;
  // Throws Error corrupt when a scale isn't finite.
  ScaleGrid read_scales(const ScalePart& scales) const { return read_scales(scales, 1.0f, 1.0f); }
  ScaleGrid read_scales(const ScalePart& scales, float factor, float divisor) const;
  // The only number of a float part; integers of an int32 or int64 part.
  float read_number(std::string_view part) const;
  std::vector<int64_t> read_integers(std::string_view part) const;

 private:
  std::string name_of(std::string_view part) const;

  Checkpoint* source_;
  std::string module_;
  std::map<std::string, const CheckpointEntry*, std::less<>> parts_;
};

inline constexpr DType kFloatTypes[] = {DType::f32, DType::f16, DType::bf16};
inline constexpr DType kWordTypes[] = {DType::i32, DType::u32};
inline constexpr DType kFloat8Types[] = {DType::f8_e4m3, DType::f8_e5m2};

}  // namespace paceline
