#include "tests/llm/random_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace paceline::testing {
namespace {

// The half floats of a block: one that multiplies all its elements, and in some types another that
// is added; in MXFP4 an exponent, in NVFP4 four floats of 8 bits. Their offsets are from
// ggml-common.h. With these values and random other bytes, elements are around zero with a spread
// of about 0.1.
struct BlockScales {
  GgufType type;
  size_t scale_at;
  float scale;
  size_t offset_at = 0;  // where there is an offset
  float offset = 0.0f;
};
constexpr std::array<BlockScales, 16> kBlockScales = {{
    {GgufType::q4_0, 0, 0.02f},
    {GgufType::q4_1, 0, 0.02f, 2, -0.15f},
    {GgufType::q5_0, 0, 0.01f},
    {GgufType::q5_1, 0, 0.01f, 2, -0.155f},
    {GgufType::q8_0, 0, 0.00135f},
    {GgufType::q2_k, 80, 0.01f, 82, 0.015f},
    {GgufType::q3_k, 108, 0.0024f},
    {GgufType::q4_k, 0, 0.0005f, 2, 0.00375f},
    {GgufType::q5_k, 0, 0.00025f, 2, 0.003875f},
    {GgufType::q6_k, 208, 0.00008f},
    {GgufType::iq4_nl, 0, 0.0015f},
    {GgufType::iq4_xs, 0, 0.00008f},
    {GgufType::mxfp4, 0, 0.04f},
    {GgufType::iq3_xxs, 0, 0.00035f},
    {GgufType::iq3_s, 0, 0.00036f},
    {GgufType::nvfp4, 0, 0.04f},
}};

constexpr std::array<GgufType, 19> kTypes = [] {
  std::array<GgufType, 19> all = {GgufType::f32, GgufType::f16, GgufType::bf16};
  for (size_t i = 0; i < kBlockScales.size(); ++i) all[3 + i] = kBlockScales[i].type;
  return all;
}();

template <class T>
void put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

std::string random_numbers(GgufType type, size_t count, std::mt19937_64& random) {
  std::uniform_real_distribution<float> spread(-0.17f, 0.17f);
  const size_t size = layout_of(type).block_bytes;
  std::string bytes(count * size, '\0');
  for (size_t i = 0; i < count; ++i) {
    const float value = spread(random);
    if (type == GgufType::f32) put(bytes, i * size, value);
    if (type == GgufType::f16) put(bytes, i * size, to_float16(value));
    if (type == GgufType::bf16) put(bytes, i * size, to_bfloat16(value));
  }
  return bytes;
}

}  // namespace

std::span<const GgufType> types_with_random_blocks() { return kTypes; }

std::string random_blocks(GgufType type, size_t count, std::mt19937_64& random) {
  if (plain_dtype(type)) return random_numbers(type, count, random);
  const auto* const scales = std::ranges::find(kBlockScales, type, &BlockScales::type);
  PL_CHECK(scales != kBlockScales.end(), "no random blocks of this type");
  const GgufTypeLayout layout = layout_of(type);
  std::string bytes(count / layout.block_elements * layout.block_bytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() & 0xFF);
  std::uniform_real_distribution<float> spread(0.5f, 1.5f);  // makes blocks differ
  for (size_t block = 0; block < bytes.size(); block += layout.block_bytes) {
    const float factor = spread(random);
    if (type == GgufType::mxfp4) {
      const int exponent = std::ilogb(factor * scales->scale);
      put(bytes, block + scales->scale_at, static_cast<uint8_t>(127 + exponent));
      continue;
    }
    if (type == GgufType::nvfp4) {  // scales E4M3: 2^-5 to 2^-4
      for (size_t i = 0; i < 4; ++i) put(bytes, block + i, static_cast<uint8_t>(16 + random() % 9));
      continue;
    }
    put(bytes, block + scales->scale_at, to_float16(factor * scales->scale));
    if (scales->offset == 0.0f) continue;
    put(bytes, block + scales->offset_at, to_float16(factor * scales->offset));
  }
  return bytes;
}

}  // namespace paceline::testing
