// How the elements of weights, keys and values are stored: float, F16, Bf16, or int8_t for codes of
// keys and values, which are multiplied by the scale of their token and head.
#pragma once

#include <string_view>
#include <type_traits>

#include "kernels/cuda/code/small_floats.h"

namespace paceline::cuda {

template <class Stored>
inline constexpr bool kHasScales = std::is_same_v<Stored, int8_t>;

template <class Stored>
PL_DEVICE float element_value(Stored element) {
  if constexpr (kHasScales<Stored>) {
    return static_cast<float>(element);
  } else {
    return to_float(element);
  }
}

// A kernel's name, which ends in the type that it is compiled for.
struct TypeNames {
  std::string_view f32, f16, bf16, i8;

  template <class Stored>
  constexpr std::string_view of() const {
    if constexpr (std::is_same_v<Stored, float>) return f32;
    if constexpr (std::is_same_v<Stored, F16>) return f16;
    if constexpr (std::is_same_v<Stored, Bf16>) return bf16;
    return i8;
  }
};

}  // namespace paceline::cuda
