#include "weights/quantised_matrix.h"

#include <utility>

#include "weights/scaled_columns.h"

namespace paceline {
namespace {

using MatrixFormat = QuantisedMatrix (*)(const ModuleParts&, const PublishedQuantisation&);

// Null for tensors that are plain, or of MLX's affine format, or unknown.
MatrixFormat find_format(const ModuleParts& parts, const PublishedQuantisation& settings) {
  if (!parts.torchao_tensor().type.empty()) return torchao_matrix;
  if (parts.has("qweight")) return settings.words_are_awq ? awq_matrix : gptq_matrix;
  if (parts.has("weight_packed")) {
    return parts.has("weight_packed", DType::u8) ? e2m1_matrix : packed_integer_matrix;
  }
  if (parts.has("W_q")) return hqq_matrix;
  if (parts.has("weight.absmax")) return bitsandbytes_matrix;
  if (parts.has("weight", DType::f8_e4m3) || parts.has("weight", DType::f8_e5m2)) {
    return float8_matrix;
  }
  if (parts.has("weight", DType::i8)) return byte_matrix;
  if (parts.has("weight", DType::u8)) return e2m1_matrix;
  if (parts.has("weight", DType::u32) && parts.has("scales", DType::u8)) return mlx_float_matrix;
  return nullptr;
}

// The columns of the matrix are multiplied by what the tool multiplies the inputs by.
QuantisedMatrix with_input_scales(MatrixFormat format, const ModuleParts& parts,
                                  PublishedQuantisation settings) {
  const DType dtype = std::exchange(settings.dtype, DType::f32);
  settings.keeps_float8 = false;
  QuantisedMatrix matrix = format(parts, settings);
  const auto factors = parts.read_factors("pre_quant_scale", matrix.shape[matrix.shape.rank() - 1]);
  matrix.format += ", with scales of inputs";
  matrix.numbers = [=]() { return std::make_shared<ScaledColumns>(matrix.open(), factors, dtype); };
  matrix.packed = nullptr;
  return matrix;
}

}  // namespace

std::optional<QuantisedMatrix> find_quantised_matrix(const ModuleParts& parts,
                                                     const PublishedQuantisation& settings) {
  const MatrixFormat format = find_format(parts, settings);
  if (format == nullptr) {
    const bool is_word = parts.has("weight", DType::i32) || parts.has("weight", DType::i64);
    if (is_word) parts.unsupported("weight", "holds integers in a form that can't be read");
    return std::nullopt;
  }
  const bool is_weight = format == torchao_matrix || format == bitsandbytes_matrix ||
                         format == float8_matrix || format == byte_matrix ||
                         format == mlx_float_matrix ||
                         (format == e2m1_matrix && !parts.has("weight_packed"));
  if (!is_weight && parts.has("weight")) {
    parts.corrupt("weight", "stands beside the parts of the same matrix, quantised");
  }
  if (parts.has("pre_quant_scale")) return with_input_scales(format, parts, settings);
  return format(parts, settings);
}

}  // namespace paceline
