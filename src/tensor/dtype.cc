#include "tensor/dtype.h"

#include <array>
#include <utility>

namespace paceline {

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::i8:
      return "int8";
    case DType::i32:
      return "int32";
    case DType::u32:
      return "uint32";
    case DType::u8:
      return "uint8";
    case DType::i64:
      return "int64";
    case DType::f8_e4m3:
      return "float8_e4m3";
    case DType::f8_e5m2:
      return "float8_e5m2";
    case DType::f8_e8m0:
      return "float8_e8m0";
  }
  return "unknown";
}

std::optional<DType> parse_dtype(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 14> kNames = {{
      {"float32", DType::f32},
      {"f32", DType::f32},
      {"F32", DType::f32},
      {"float16", DType::f16},
      {"f16", DType::f16},
      {"F16", DType::f16},
      {"half", DType::f16},
      {"bfloat16", DType::bf16},
      {"bf16", DType::bf16},
      {"BF16", DType::bf16},
      {"int32", DType::i32},
      {"i32", DType::i32},
      {"I32", DType::i32},
      {"float", DType::f32},
  }};
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

// Integer arithmetic only (and one exact product), so that no float mode changes a bit; NaNs become
// quiet and keep the rest of their payload, as in the F16C instructions.
float to_float(Float16 value) {
  const uint32_t sign = (value.bits & 0x8000u) << 16;
  const uint32_t exponent = (value.bits >> 10) & 0x1Fu;
  const uint32_t mantissa = value.bits & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 0x1F) {
    const uint32_t quiet = mantissa != 0 ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7F800000u | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + (127 - 15)) << 23) | (mantissa << 13));
}

Float16 to_float16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const auto result = [sign](uint32_t rest) { return Float16{static_cast<uint16_t>(sign | rest)}; };
  if (magnitude > 0x7F800000u) return result(0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x47800000u) return result(0x7C00u);  // 2^16 and more
  if (magnitude >= 0x38800000u) {                        // 2^-14 and more: normal
    const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
    return result((rounded - ((127u - 15u) << 23)) >> 13);
  }
  const uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return result(0);  // below half of the smallest subnormal, 2^-24
  const uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
  const uint32_t shift = 126 - exponent;  // 14 to 24
  const uint32_t half = 1u << (shift - 1);
  const uint32_t odd = (mantissa >> shift) & 1u;
  return result((mantissa + (half - 1) + odd) >> shift);
}

}  // namespace paceline
