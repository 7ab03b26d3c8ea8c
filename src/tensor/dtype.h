// Element types of tensors, and the conversions between float32 and the 16-bit floats.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace paceline {

// Files may also hold 64-bit integers and floats of 8 bits (float8.h): only weights/ reads them.
enum class DType : uint8_t { f32, f16, bf16, i8, i32, u32, u8, i64, f8_e4m3, f8_e5m2, f8_e8m0 };

struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

constexpr size_t dtype_bytes(DType dtype) {
  if (dtype == DType::i8 || dtype == DType::u8 || dtype >= DType::f8_e4m3) return 1;
  if (dtype == DType::i64) return 8;
  return dtype == DType::f16 || dtype == DType::bf16 ? 2 : 4;
}
constexpr bool is_float(DType dtype) { return dtype < DType::i8; }

// "float32", "float16", "bfloat16", "int8", "int32", "uint32", "uint8", "int64", "float8_e4m3",
// "float8_e5m2", "float8_e8m0".
std::string_view dtype_name(DType dtype);
// Accepts "float32"/"f32"/"F32", "float16"/"f16"/"half", "bfloat16"/"bf16", "int32".
std::optional<DType> parse_dtype(std::string_view name);

inline float to_float(float value) { return value; }
inline float to_float(BFloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }
float to_float(Float16 value);

// Round to nearest, ties to even; NaN stays NaN (quiet).
inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}
Float16 to_float16(float value);

inline void assign_float(float value, float& out) { out = value; }
inline void assign_float(float value, BFloat16& out) { out = to_bfloat16(value); }
inline void assign_float(float value, Float16& out) { out = to_float16(value); }

// `value` rounded to a float type.
template <class T>
T from_float(float value) {
  T out;
  assign_float(value, out);
  return out;
}

// The C++ type of a dtype: with_float_dtype(d, [&]<class T>() { ... }).
template <class Body>
decltype(auto) with_float_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f16:
      return body.template operator()<Float16>();
    case DType::bf16:
      return body.template operator()<BFloat16>();
    default:
      return body.template operator()<float>();
  }
}

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<Float16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}

}  // namespace paceline
