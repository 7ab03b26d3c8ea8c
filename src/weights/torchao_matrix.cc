// Matrices of torchao whose metadata names their class (torchao/quantization/quantize_/workflows,
// torchao/prototype/mx_formats).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weights/integer_matrix.h"
#include "weights/quoted_name.h"

namespace paceline {
namespace {

constexpr int kInt4Zero = 8;

void check_group(const ModuleParts& parts, std::string_view part, int64_t row_length,
                 int64_t num_groups) {
  if (num_groups > 0 && row_length % num_groups == 0) return;
  parts.corrupt(part, fmt::format("has {} groups, which don't divide rows of {} elements",
                                  num_groups, row_length));
}

// Int4Tensor: `weight` [rows, row length / 2] of two signed codes in a byte, scales and zero points
// [groups, rows]. An element is scale * code + zero point, as int4_row_quantize_zp() of FBGEMM's
// experimental/gen_ai/quantize.py, which torchao calls, makes them.
QuantisedMatrix int4_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  constexpr DType kByteTypes[] = {DType::i8, DType::u8};
  const Extents bytes = parts.matrix_shape("weight", kByteTypes);
  const Extents scales = parts.matrix_shape("weight_scale", kFloatTypes);
  const int64_t rows = bytes[0], row_length = 2 * bytes[1];
  if (scales[1] != rows) {
    parts.corrupt("weight_scale",
                  fmt::format("has shape {}, expected [groups, {}]", to_string(scales), rows));
  }
  check_group(parts, "weight_scale", row_length, scales[0]);
  parts.expect("weight_zero_point", scales, kFloatTypes);
  const IntegerFormat format{.bits = 4,
                             .group_size = row_length / scales[0],
                             .scale_dtype = parts.at("weight_scale").dtype,
                             .value_dtype = settings.dtype};
  const ScaleLayout layout{
      .block_columns = format.group_size, .row_stride = 1, .column_stride = rows};
  return integer_matrix(format, {rows, row_length}, [=]() {
    IntegerMatrix matrix{.rows = rows,
                         .row_length = row_length,
                         .bits = format.bits,
                         .scales = parts.read_scales({"weight_scale", layout}),
                         .zero = kInt4Zero,
                         .offset_grid = parts.read_scales({"weight_zero_point", layout}),
                         .dtype = format.value_dtype};
    matrix.codes = codes_in_nibbles(parts.read("weight"));
    return matrix;
  });
}

// Int4TilePackedTo4dTensor: `weight` [rows / 8, row length / 128, 32, 4] of words, padded to rows
// of 1024, and `weight_scale_and_zero` [groups, rows, 2]. An element is scale * (code - 8) + zero
// point (_dequantize_affine_tinygemm() of torchao/quantization/quant_primitives.py).
QuantisedMatrix tiled_int4_matrix(const ModuleParts& parts, const PublishedQuantisation& settings,
                                  const TorchaoTensor& tensor) {
  constexpr std::string_view kScales = "weight_scale_and_zero";
  const CheckpointEntry& words = parts.at("weight");
  const CheckpointEntry& numbers = parts.at(kScales);
  if (!tensor.shape || tensor.shape->rank() != 2) {
    parts.unsupported("weight", "stacks of tiles, or tiles without their `shape`, can't be read");
  }
  const Extents& shape = *tensor.shape;
  const bool are_tiles = words.dtype == DType::i32 && words.shape.rank() == 4 &&
                         words.shape[2] == 32 && words.shape[3] == 4;
  if (!are_tiles || (shape[0] - 1) / kWarpTileRows >= words.shape[0] ||
      (shape[1] - 1) / kWarpTileColumns >= words.shape[1]) {
    parts.corrupt("weight", fmt::format("holds {} of {}, expected [{} or more, {} or more, 32, 4] "
                                        "of int32 for a matrix {}",
                                        to_string(words.shape), dtype_name(words.dtype),
                                        (shape[0] + kWarpTileRows - 1) / kWarpTileRows,
                                        (shape[1] + kWarpTileColumns - 1) / kWarpTileColumns,
                                        to_string(shape)));
  }
  const int64_t padded_rows = words.shape[0] * kWarpTileRows;
  const int64_t padded_length = words.shape[1] * kWarpTileColumns;
  if (numbers.shape.rank() != 3) {
    parts.corrupt(kScales, fmt::format("has shape {}, expected [groups, {}, 2]",
                                       to_string(numbers.shape), padded_rows));
  }
  const int64_t num_groups = numbers.shape[0];
  parts.expect(kScales, {num_groups, padded_rows, 2}, kFloatTypes);
  check_group(parts, kScales, padded_length, num_groups);
  const IntegerFormat format{.bits = 4,
                             .group_size = padded_length / num_groups,
                             .scale_dtype = numbers.dtype,
                             .value_dtype = settings.dtype};
  const ScaleLayout layout{
      .block_columns = format.group_size, .row_stride = 2, .column_stride = 2 * padded_rows};
  return integer_matrix(format, shape, [=]() {
    IntegerMatrix matrix{.rows = shape[0],
                         .row_length = shape[1],
                         .bits = format.bits,
                         .scales = parts.read_scales({std::string(kScales), layout}),
                         .zero = kInt4Zero,
                         .dtype = format.value_dtype};
    const Tensor pairs = parts.read(kScales);
    auto* const second = static_cast<std::byte*>(pairs.raw()) + dtype_bytes(pairs.dtype());
    matrix.offset_grid =
        ScaleGrid(Tensor(second, pairs.dtype(), {pairs.num_elements() - 1}), layout);
    matrix.codes = codes_in_tiles(parts.read("weight"));
    return matrix;
  });
}

}  // namespace

QuantisedMatrix torchao_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  const TorchaoTensor tensor = parts.torchao_tensor();
  if (tensor.type == "Int4Tensor") return int4_matrix(parts, settings);
  if (tensor.type == "Int4TilePackedTo4dTensor") return tiled_int4_matrix(parts, settings, tensor);
  if (tensor.type == "NVFP4Tensor" && parts.has("weight", DType::u8)) {
    return e2m1_matrix(parts, settings);
  }
  if (tensor.type == "MXTensor") {
    const bool is_e2m1 = tensor.element.starts_with("float4_e2m1");
    if (is_e2m1 && parts.has("weight", DType::u8)) return e2m1_matrix(parts, settings);
    if (tensor.element.starts_with("float8_e")) return float8_matrix(parts, settings);
  }
  if (tensor.type == "Float8Tensor") return float8_matrix(parts, settings);
  if (tensor.type == "Int8Tensor" || tensor.type == "IntxUnpackedToInt8Tensor") {
    return byte_matrix(parts, settings);
  }
  const std::string of = tensor.element.empty() ? "" : " of " + quoted_name(tensor.element);
  parts.unsupported("weight",
                    fmt::format("is torchao's {}{}, which can't be read (Int4Tensor, "
                                "Int4TilePackedTo4dTensor, Int8Tensor, IntxUnpackedToInt8Tensor, "
                                "Float8Tensor, NVFP4Tensor and MXTensor of 4 and 8 bits can)",
                                quoted_name(tensor.type), of));
}

}  // namespace paceline
