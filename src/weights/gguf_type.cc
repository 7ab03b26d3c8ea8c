#include "weights/gguf_type.h"

#include <algorithm>
#include <array>
#include <utility>

namespace paceline {
namespace {

// Present and former types of ggml that aren't supported.
constexpr std::array<std::pair<uint32_t, std::string_view>, 21> kUnreadable = {{
    {4, "Q4_2"},        {5, "Q4_3"},      {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"},
    {17, "IQ2_XS"},     {19, "IQ1_S"},    {22, "IQ2_S"}, {24, "I8"},    {25, "I16"},
    {26, "I32"},        {27, "I64"},      {28, "F64"},   {29, "IQ1_M"}, {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"}, {34, "TQ1_0"}, {35, "TQ2_0"}, {41, "Q1_0"},
    {36, "IQ4_NL_4_4"},
}};

}  // namespace

std::optional<GgufTypeLayout> find_gguf_type(uint32_t number) {
  for (const GgufTypeLayout& layout : kGgufTypes) {
    if (static_cast<uint32_t>(layout.type) == number) return layout;
  }
  return std::nullopt;
}

std::string_view gguf_type_name(uint32_t number) {
  if (const auto layout = find_gguf_type(number)) return layout->name;
  const auto* at =
      std::ranges::find(kUnreadable, number, &decltype(kUnreadable)::value_type::first);
  return at == kUnreadable.end() ? std::string_view() : at->second;
}

std::optional<DType> plain_dtype(GgufType type) {
  switch (type) {
    case GgufType::f32:
      return DType::f32;
    case GgufType::f16:
      return DType::f16;
    case GgufType::bf16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

}  // namespace paceline
