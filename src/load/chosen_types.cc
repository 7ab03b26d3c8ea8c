#include "load/chosen_types.h"

#include <fmt/format.h>

#include "base/option_names.h"

namespace paceline {
namespace {

// Nothing for DataType::automatic, and for numbers that are none of the values.
std::optional<DType> element_type(DataType dtype) {
  switch (dtype) {
    case DataType::float32:
      return DType::f32;
    case DataType::float16:
      return DType::f16;
    case DataType::bfloat16:
      return DType::bf16;
    case DataType::int8:
      return DType::i8;
    case DataType::automatic:
      break;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(std::string_view flag, std::string_view found, std::string_view expected) {
  throw Error(ErrorCode::invalid,
              fmt::format("{}: found \"{}\", expected {}", flag, found, expected));
}

}  // namespace

DType choose_dtype(DataType dtype, DType automatic) {
  if (dtype == DataType::automatic) return automatic;
  const auto chosen = element_type(dtype);
  if (chosen && is_float(*chosen)) return *chosen;
  refuse("--dtype", option_name(dtype), "auto, float32, float16 or bfloat16");
}

DType choose_kv_dtype(DataType dtype, DType automatic) {
  if (dtype == DataType::automatic) return automatic;
  if (const auto chosen = element_type(dtype)) return *chosen;
  refuse("--kv-cache-dtype", option_name(dtype), "auto, float32, float16, bfloat16 or int8");
}

DType choose_state_dtype(DataType dtype) {
  if (dtype == DataType::automatic) return DType::f32;
  const auto chosen = element_type(dtype);
  if (chosen == DType::f32 || chosen == DType::bf16) return *chosen;
  refuse("--state-dtype", option_name(dtype), "auto, float32 or bfloat16");
}

std::optional<ActivationType> choose_activations(Activations activations) {
  switch (activations) {
    case Activations::automatic:
    case Activations::int8:
      return ActivationType::int8;
    case Activations::bfloat16:
      return ActivationType::bf16;
    case Activations::plain:
      return std::nullopt;
  }
  refuse("--activations", option_name(activations), "auto, int8, bfloat16 or plain");
}

}  // namespace paceline
