// Matrices of floats of 8 and of 4 bits: FP8 of DeepSeek, compressed-tensors and ModelOpt; NVFP4,
// MXFP4 and MXFP8 of these and of MLX.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weights/float8_rows.h"
#include "weights/integer_matrix.h"

namespace paceline {
namespace {

constexpr DType kFloatBytes[] = {DType::u8};
constexpr int64_t kShortGroup = 16;

// The parts of a matrix of floats of 4 bits. A scale of the whole matrix multiplies the others in
// `weight_scale_2`, and divides them in `weight_global_scale`.
struct E2m1Parts {
  std::string_view elements;  // bytes, or words of four bytes
  ScalePart scales;
  std::string_view factor = {};
  std::string_view divisor = {};
};

Extents with_length(Extents shape, int64_t length) {
  shape[shape.rank() - 1] = length;
  return shape;
}

Tensor as_bytes(const Tensor& elements) {
  const auto bytes = static_cast<int64_t>(dtype_bytes(elements.dtype()));
  return {elements.raw(), DType::u8, {elements.size(0), elements.size(1) * bytes}};
}

// Kernels multiply twice the numbers, which are whole.
QuantisedMatrix make_e2m1_matrix(const ModuleParts& parts, const PublishedQuantisation& settings,
                                 const Extents& matrix, const E2m1Parts& of) {
  const int64_t group_size = of.scales.layout.block_columns;
  // Codes are 0 to 24; kernels have none of 5 bits in groups of 16.
  const IntegerFormat format{.bits = group_size % (2 * kShortGroup) == 0 ? 5 : 6,
                             .group_size = group_size,
                             .scale_dtype = settings.dtype,
                             .value_dtype = settings.dtype};
  const Extents shape = with_length(parts.at(of.elements).shape, matrix[1]);
  QuantisedMatrix made = integer_matrix(format, shape, [=]() {
    const float factor = of.factor.empty() ? 1.0f : parts.read_number(of.factor);
    const float divisor = of.divisor.empty() ? 1.0f : parts.read_number(of.divisor);
    IntegerMatrix opened{.rows = matrix[0],
                         .row_length = matrix[1],
                         .bits = format.bits,
                         .scales = parts.read_scales(of.scales, 0.5f * factor, divisor),
                         .zero = kE2m1Zero,
                         .dtype = format.value_dtype};
    opened.codes = e2m1_codes(as_bytes(parts.read_matrix(of.elements)));
    return opened;
  });
  made.format = fmt::format("floats of 4 bits in groups of {}", group_size);
  return made;
}

QuantisedMatrix make_float8_matrix(const ModuleParts& parts, const PublishedQuantisation& settings,
                                   const Extents& matrix, const ScalePart& scales, DType elements) {
  const Extents shape = with_length(parts.at("weight").shape, matrix[1]);
  const std::string scaled =
      scales.layout.block_rows >= matrix[0] && scales.layout.block_columns >= matrix[1]
          ? "one scale"
          : fmt::format("blocks of {} x {}", scales.layout.block_rows, scales.layout.block_columns);
  const auto open = [=, dtype = settings.dtype] {
    const Tensor bytes = as_bytes(parts.read_matrix("weight"));
    return std::make_shared<const Float8Rows>(Tensor(bytes.raw(), elements, matrix),
                                              parts.read_scales(scales), dtype);
  };
  QuantisedMatrix made{.format = fmt::format("{} with {}", dtype_name(elements), scaled),
                       .shape = shape,
                       .numbers = open};
  if (settings.keeps_float8 &&
      Float8Rows::kernels_read(elements, matrix[1], scales.layout, settings.dtype)) {
    made.packed = [=]() -> std::shared_ptr<const GroupedRows> {
      auto rows = open();
      return rows->has_usual_scales() ? rows : nullptr;
    };
  }
  return made;
}

// Of NVFP4 (E4M3, groups of 16) and of MXFP4.
ScalePart e2m1_scales(const ModuleParts& parts, const Extents& matrix) {
  if (!parts.torchao_tensor().has_swizzled_scales) {
    return parts.scales("weight_scale", matrix, {}, DType::f8_e8m0);
  }
  const bool is_nvfp4 = parts.has("weight_scale", DType::f8_e4m3);
  return parts.tiled_scales("weight_scale", matrix, is_nvfp4 ? kShortGroup : 2 * kShortGroup,
                            DType::f8_e8m0);
}

}  // namespace

QuantisedMatrix float8_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  const Extents matrix = parts.stack_shape("weight", kFloat8Types);
  if (parts.torchao_tensor().has_swizzled_scales) {  // MXFP8
    const auto tiled = parts.tiled_scales("weight_scale", matrix, 2 * kShortGroup, DType::f8_e8m0);
    return make_float8_matrix(parts, settings, matrix, tiled, parts.at("weight").dtype);
  }
  const std::string_view part = parts.has("weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
  return make_float8_matrix(parts, settings, matrix,
                            parts.scales(part, matrix, settings.block, DType::f8_e8m0),
                            parts.at("weight").dtype);
}

QuantisedMatrix e2m1_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  const std::string_view elements = parts.has("weight_packed") ? "weight_packed" : "weight";
  Extents matrix = parts.stack_shape(elements, kFloatBytes);
  matrix[1] *= 2;
  const ScalePart scales = e2m1_scales(parts, matrix);
  const ScaleLayout& layout = scales.layout;
  const bool are_groups =
      layout.block_columns == kShortGroup || layout.block_columns == 2 * kShortGroup;
  if (layout.block_rows != 1 || !are_groups) {
    parts.unsupported(elements, fmt::format("bytes with scales of blocks of {} x {} can't be read, "
                                            "expected numbers E2M1 in groups of 16 or 32 columns",
                                            layout.block_rows, layout.block_columns));
  }
  return make_e2m1_matrix(
      parts, settings, matrix,
      {.elements = elements,
       .scales = scales,
       .factor = parts.has("weight_scale_2") ? "weight_scale_2" : "",
       .divisor = parts.has("weight_global_scale") ? "weight_global_scale" : ""});
}

// `weight` of uint32 with `scales` of uint8: modes of mlx.core.quantize, which differ in the words
// that share a scale.
QuantisedMatrix mlx_float_matrix(const ModuleParts& parts, const PublishedQuantisation& settings) {
  struct Mode {
    std::string_view name;
    int64_t words;  // of a group
    int64_t group_size;
    DType scales;
  };
  constexpr std::array kModes = {Mode{"mxfp4", 4, 32, DType::f8_e8m0},
                                 Mode{"mxfp8", 8, 32, DType::f8_e8m0},
                                 Mode{"nvfp4", 2, 16, DType::f8_e4m3}};
  const Extents words = parts.stack_shape("weight", kWordTypes);
  const Extents stored = parts.stack_shape("scales", kFloatBytes);
  const auto* const mode = std::ranges::find_if(kModes, [&](const Mode& known) {
    return words[0] == stored[0] && words[1] == stored[1] * known.words;
  });
  if (mode == kModes.end()) {
    parts.corrupt("scales", fmt::format("has shape {} beside words {}, expected one scale for each "
                                        "2 (nvfp4), 4 (mxfp4) or 8 (mxfp8) words of a row",
                                        to_string(stored), to_string(words)));
  }
  const Extents matrix = {words[0], stored[1] * mode->group_size};
  const ScalePart scales = parts.scales("scales", matrix, {}, mode->scales);
  if (mode->name == "mxfp8") {
    return make_float8_matrix(parts, settings, matrix, scales, DType::f8_e4m3);
  }
  return make_e2m1_matrix(parts, settings, matrix, {.elements = "weight", .scales = scales});
}

}  // namespace paceline
