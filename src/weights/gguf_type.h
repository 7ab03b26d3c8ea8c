// The element types of GGUF files: names, and elements and bytes per block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace paceline {

// The supported types, with the numbers of the file format (ggml_type of ggml's ggml.h).
enum class GgufType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq3_xxs = 18,
  iq4_nl = 20,
  iq3_s = 21,
  iq4_xs = 23,
  bf16 = 30,
  mxfp4 = 39,
  nvfp4 = 40,
};

struct GgufTypeLayout {
  GgufType type = GgufType::f32;
  std::string_view name;  // as ggml calls it: "F32", "Q4_K"
  uint64_t block_elements = 1;
  uint64_t block_bytes = 4;
};

// Elements and bytes per block as in ggml (ggml-common.h: block_q4_0 and so on).
inline constexpr std::array<GgufTypeLayout, 19> kGgufTypes = {{
    {GgufType::f32, "F32", 1, 4},
    {GgufType::f16, "F16", 1, 2},
    {GgufType::q4_0, "Q4_0", 32, 18},
    {GgufType::q4_1, "Q4_1", 32, 20},
    {GgufType::q5_0, "Q5_0", 32, 22},
    {GgufType::q5_1, "Q5_1", 32, 24},
    {GgufType::q8_0, "Q8_0", 32, 34},
    {GgufType::q2_k, "Q2_K", 256, 84},
    {GgufType::q3_k, "Q3_K", 256, 110},
    {GgufType::q4_k, "Q4_K", 256, 144},
    {GgufType::q5_k, "Q5_K", 256, 176},
    {GgufType::q6_k, "Q6_K", 256, 210},
    {GgufType::iq3_xxs, "IQ3_XXS", 256, 98},
    {GgufType::iq4_nl, "IQ4_NL", 32, 18},
    {GgufType::iq3_s, "IQ3_S", 256, 110},
    {GgufType::iq4_xs, "IQ4_XS", 256, 136},
    {GgufType::bf16, "BF16", 1, 2},
    {GgufType::mxfp4, "MXFP4", 32, 17},
    {GgufType::nvfp4, "NVFP4", 64, 36},
}};

// Nothing for the number of an unsupported type.
std::optional<GgufTypeLayout> find_gguf_type(uint32_t number);
// The name of any present or former type of ggml, supported or not; else "".
std::string_view gguf_type_name(uint32_t number);

constexpr const GgufTypeLayout& layout_of(GgufType type) {
  size_t index = 0;
  while (kGgufTypes[index].type != type) ++index;  // every GgufType is there
  return kGgufTypes[index];
}
inline std::string_view gguf_type_name(GgufType type) { return layout_of(type).name; }
// The dtype of F32, F16 and BF16, which are plain numbers; nothing for types made of blocks.
std::optional<DType> plain_dtype(GgufType type);

}  // namespace paceline
