#include "weights/module_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/divide_up.h"
#include "base/error.h"
#include "tensor/float8.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr int64_t kUsualBlock = 128;

std::string dtype_names(std::span<const DType> dtypes) {
  std::string names;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    names += i == 0 ? "" : i + 1 == dtypes.size() ? " or " : ", ";
    names += dtype_name(dtypes[i]);
  }
  return names;
}

bool holds_elements(const Extents& shape) {
  return std::ranges::find(shape, int64_t{0}) == shape.end();
}

// The size of the blocks that `count` scales divide `size` elements into; 0: they don't.
int64_t block_size(int64_t size, int64_t count, std::optional<int64_t> given) {
  if (count == 1) return size;
  if (given && *given > 0 && divide_up(size, *given) == count) return *given;
  if (size % count == 0) return size / count;
  return divide_up(size, kUsualBlock) == count ? kUsualBlock : 0;
}

}  // namespace

std::string ModuleParts::name_of(std::string_view part) const {
  const auto at = parts_.find(part);
  return at == parts_.end() ? fmt::format("{}.{}", module_, part) : at->second->name;
}

std::vector<std::string> ModuleParts::names() const {
  std::vector<std::string> names;
  for (const auto& [part, entry] : parts_) names.push_back(entry->name);
  return names;
}

uint64_t ModuleParts::stored_bytes() const {
  uint64_t total = 0;
  for (const auto& [part, entry] : parts_) {
    uint64_t bytes = dtype_bytes(entry->dtype);  // the file holds them: no overflow
    for (const int64_t size : entry->shape) bytes *= static_cast<uint64_t>(size);
    total += bytes;
  }
  return total;
}

bool ModuleParts::has(std::string_view part, DType dtype) const {
  const auto at = parts_.find(part);
  return at != parts_.end() && at->second->dtype == dtype;
}

std::string ModuleParts::place_of(std::string_view part) const {
  return fmt::format("{}: tensor {}", source_->origin(), quoted_name(name_of(part)));
}

void ModuleParts::corrupt(std::string_view part, std::string_view what) const {
  throw Error(ErrorCode::corrupt, fmt::format("{}: {}", place_of(part), what));
}

void ModuleParts::unsupported(std::string_view part, std::string_view what) const {
  throw Error(ErrorCode::unsupported, fmt::format("{}: {}", place_of(part), what));
}

const CheckpointEntry& ModuleParts::at(std::string_view part) const {
  const auto at = parts_.find(part);
  if (at == parts_.end()) {
    corrupt(part, fmt::format("is missing, and the quantised {} needs it", quoted_name(module_)));
  }
  return *at->second;
}

TorchaoTensor ModuleParts::torchao_tensor() const {
  const auto weight = parts_.find("weight");
  if (weight == parts_.end() || weight->second->note.empty()) return {};
  return TorchaoTensor::parse(weight->second->note, place_of("weight") + ": metadata");
}

Extents ModuleParts::matrix_shape(std::string_view part, std::span<const DType> dtypes) const {
  const Extents& shape = at(part).shape;
  if (shape.rank() == 3) {
    corrupt(part, fmt::format("has shape {}, expected a matrix", to_string(shape)));
  }
  return stack_shape(part, dtypes);
}

Extents ModuleParts::stack_shape(std::string_view part, std::span<const DType> dtypes) const {
  const CheckpointEntry& entry = at(part);
  const Extents& shape = entry.shape;
  if ((shape.rank() != 2 && shape.rank() != 3) || !holds_elements(shape)) {
    corrupt(part, fmt::format("has shape {}, expected a matrix", to_string(shape)));
  }
  if (std::ranges::find(dtypes, entry.dtype) == dtypes.end()) {
    corrupt(part,
            fmt::format("holds {}, expected {}", dtype_name(entry.dtype), dtype_names(dtypes)));
  }
  if (shape.rank() == 2) return shape;
  return {shape[0] * shape[1], shape[2]};
}

void ModuleParts::expect(std::string_view part, const Extents& shape,
                         std::span<const DType> dtypes) const {
  const CheckpointEntry& entry = at(part);
  const bool is_type = std::ranges::find(dtypes, entry.dtype) != dtypes.end();
  if (is_type && entry.shape == shape) return;
  corrupt(part, fmt::format("holds {} of {}, expected {} of {}", to_string(entry.shape),
                            dtype_name(entry.dtype), to_string(shape), dtype_names(dtypes)));
}

ScalePart ModuleParts::scales(std::string_view part, const Extents& matrix,
                              const std::optional<Extents>& block,
                              std::optional<DType> bytes_are) const {
  const CheckpointEntry& entry = at(part);
  const Extents& shape = entry.shape;
  const auto misfit = [&]() {
    corrupt(part, fmt::format("has shape {}, which doesn't divide the matrix {}", to_string(shape),
                              to_string(matrix)));
  };
  const bool are_bytes = entry.dtype == DType::u8 && bytes_are;
  if (!is_float(entry.dtype) && !is_float8(entry.dtype) && entry.dtype != DType::i8 && !are_bytes) {
    corrupt(part,
            fmt::format("holds {}, expected scales that are floats", dtype_name(entry.dtype)));
  }
  if (shape.rank() > 3 || !holds_elements(shape)) misfit();
  int64_t of_rows = 1, of_columns = 1;
  if (shape.rank() > 0) {
    // One dimension is that of rows.
    of_columns = shape.rank() == 1 ? 1 : shape[shape.rank() - 1];
    for (int i = 0; i < std::max(1, shape.rank() - 1); ++i) of_rows *= shape[i];
  }
  const auto given = [&](int i) { return block ? std::optional((*block)[i]) : std::nullopt; };
  const int64_t block_rows = block_size(matrix[0], of_rows, given(0));
  const int64_t block_columns = block_size(matrix[1], of_columns, given(1));
  if (block_rows == 0 || block_columns == 0) misfit();
  return {.part = std::string(part),
          .layout = {block_rows, block_columns, of_columns, 1},
          .bytes_are = are_bytes ? bytes_are : std::nullopt};
}

ScalePart ModuleParts::tiled_scales(std::string_view part, const Extents& matrix,
                                    int64_t group_size, std::optional<DType> bytes_are) const {
  const CheckpointEntry& entry = at(part);
  const bool are_bytes = entry.dtype == DType::u8 && bytes_are;
  const int64_t row_tiles = divide_up(matrix[0], ScaleLayout::kTileRows);
  const int64_t tiles = divide_up(matrix[1], group_size * ScaleLayout::kTileGroups);
  uint64_t count = 1;  // the file holds them: no overflow
  for (const int64_t size : entry.shape) count *= static_cast<uint64_t>(size);
  const auto needed =
      static_cast<uint64_t>(row_tiles * tiles * ScaleLayout::kTileRows * ScaleLayout::kTileGroups);
  if (count != needed || (!is_float8(entry.dtype) && !are_bytes)) {
    corrupt(part, fmt::format("holds {} of {}, expected {} scales of 8 bits in tiles of 128 x 4 "
                              "for a matrix {}",
                              to_string(entry.shape), dtype_name(entry.dtype), needed,
                              to_string(matrix)));
  }
  return {.part = std::string(part),
          .layout = {.block_columns = group_size, .tiles_of_row = tiles},
          .bytes_are = are_bytes ? bytes_are : std::nullopt};
}

std::vector<float> ModuleParts::read_factors(std::string_view part, int64_t count) const {
  const CheckpointEntry& entry = at(part);
  const Tensor stored = read(part);
  if (!is_float(entry.dtype) || stored.num_elements() != count) {
    corrupt(part, fmt::format("holds {} of {}, expected {} floats", to_string(entry.shape),
                              dtype_name(entry.dtype), count));
  }
  std::vector<float> factors(static_cast<size_t>(count));
  copy_elements(stored.reshape({count}), Tensor(factors.data(), DType::f32, {count}));
  if (!std::ranges::all_of(factors, [](float factor) { return std::isfinite(factor); })) {
    corrupt(part, "has a factor that isn't a finite number");
  }
  return factors;
}

Tensor ModuleParts::read(std::string_view part) const {
  const CheckpointEntry& entry = at(part);
  return source_->read(entry.name, entry.shape);
}

Tensor ModuleParts::read_matrix(std::string_view part) const {
  const Tensor stored = read(part);
  return stored.reshape({stored.num_elements() / stored.size(-1), stored.size(-1)});
}

ScaleGrid ModuleParts::read_scales(const ScalePart& scales, float factor, float divisor) const {
  Tensor stored = read(scales.part);
  if (scales.bytes_are) stored = Tensor(stored.raw(), *scales.bytes_are, stored.shape());
  ScaleGrid grid(stored, scales.layout);
  grid.factor = factor;
  grid.divisor = divisor;
  if (!grid.all_finite()) corrupt(scales.part, "has a scale that isn't a finite number");
  return grid;
}

float ModuleParts::read_number(std::string_view part) const {
  const CheckpointEntry& entry = at(part);
  if (!is_float(entry.dtype)) {
    corrupt(part, fmt::format("holds {}, expected {}", dtype_name(entry.dtype),
                              dtype_names(kFloatTypes)));
  }
  const Tensor stored = read(part);
  if (stored.num_elements() != 1) {
    corrupt(part, fmt::format("has shape {}, expected one number", to_string(entry.shape)));
  }
  const float value =
      with_float_dtype(entry.dtype, [&]<class T>() { return to_float(*stored.elements<T>()); });
  if (!std::isfinite(value) || value == 0) {
    corrupt(part, fmt::format("found {}, expected a finite number other than zero", value));
  }
  return value;
}

std::vector<int64_t> ModuleParts::read_integers(std::string_view part) const {
  const CheckpointEntry& entry = at(part);
  if (entry.dtype != DType::i32 && entry.dtype != DType::i64) {
    corrupt(part, fmt::format("holds {}, expected int32 or int64", dtype_name(entry.dtype)));
  }
  const Tensor stored = read(part);
  std::vector<int64_t> integers(static_cast<size_t>(stored.num_elements()));
  for (size_t i = 0; i < integers.size(); ++i) {
    integers[i] = entry.dtype == DType::i64 ? stored.elements<int64_t>()[i]
                                            : int64_t{stored.elements<int32_t>()[i]};
  }
  return integers;
}

}  // namespace paceline
