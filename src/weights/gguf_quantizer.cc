// The blocks' layouts are those that gguf_blocks.cc reads.
#include "weights/gguf_quantizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "tensor/dtype.h"
#include "weights/group_fit.h"

namespace paceline {
namespace {

constexpr size_t kSmallBlock = 32, kLargeBlock = 256;

using SmallValues = std::span<const float, kSmallBlock>;
using LargeValues = std::span<const float, kLargeBlock>;

float put_half(float value, uint8_t* at) {
  const Float16 half = from_float<Float16>(value);
  std::memcpy(at, &half.bits, sizeof(half.bits));
  return to_float(half);
}

// The element of largest magnitude, the first of several.
float edge_of(SmallValues values) {
  const auto smaller = [](float a, float b) { return std::abs(a) < std::abs(b); };
  return *std::ranges::max_element(values, smaller);
}

float reciprocal(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

// The integer part of a code, within 0 to `steps`.
uint8_t whole_code(float code, float steps) {
  return static_cast<uint8_t>(std::clamp(std::isnan(code) ? 0.0f : code, 0.0f, steps));
}

// Packs two codes below 16 in each byte, `codes.size() / 2` elements apart.
void put_nibbles(std::span<const uint8_t> codes, uint8_t* bytes) {
  const size_t half = codes.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    bytes[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[half + i] & 15) << 4);
  }
}

// The fifth bits of 32 codes.
void put_fifth_bits(std::span<const uint8_t> codes, uint8_t* bytes) {
  std::fill_n(bytes, 4, uint8_t{0});
  for (size_t i = 0; i < kSmallBlock; ++i) {
    bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | (codes[i] >> 4 & 1) << (i % 8));
  }
}

// Codes around half of the steps: the element of largest magnitude has code 0.
std::array<uint8_t, kSmallBlock> centred_codes(SmallValues values, float half, float scale) {
  const float inverse = reciprocal(scale);
  std::array<uint8_t, kSmallBlock> codes{};
  for (size_t i = 0; i < kSmallBlock; ++i) {
    codes[i] = whole_code(values[i] * inverse + (half + 0.5f), 2 * half - 1);
  }
  return codes;
}

void write_q4_0(SmallValues values, uint8_t* block) {
  const float scale = edge_of(values) / -8.0f;
  put_half(scale, block);
  put_nibbles(centred_codes(values, 8, scale), block + 2);
}

void write_q5_0(SmallValues values, uint8_t* block) {
  const float scale = edge_of(values) / -16.0f;
  const auto codes = centred_codes(values, 16, scale);
  put_half(scale, block);
  put_fifth_bits(codes, block + 2);
  put_nibbles(codes, block + 6);
}

void write_q5_1(SmallValues values, uint8_t* block) {
  const auto [least, most] = std::ranges::minmax(values);
  const float scale = (most - least) / 31.0f;
  const float inverse = reciprocal(scale);
  std::array<uint8_t, kSmallBlock> codes{};
  for (size_t i = 0; i < kSmallBlock; ++i) {
    codes[i] = whole_code((values[i] - least) * inverse + 0.5f, 31);
  }
  put_half(scale, block);
  put_half(least, block + 2);
  put_fifth_bits(codes, block + 4);
  put_nibbles(codes, block + 8);
}

void write_q8_0(SmallValues values, uint8_t* block) {
  const float scale = std::abs(edge_of(values)) / 127.0f;
  const float inverse = reciprocal(scale);
  put_half(scale, block);
  for (size_t i = 0; i < kSmallBlock; ++i) {
    // Halves are rounded away from zero.
    const float code = std::clamp(std::round(values[i] * inverse), -127.0f, 127.0f);
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::isnan(code) ? 0.0f : code));
  }
}

// What the eight groups of Q4_K and Q5_K have: multiples of two factors, and codes.
struct RangedBlock {
  float factor = 0, minimum_factor = 0;
  float error = 0;
  std::array<uint8_t, 8> scales{}, minima{};
  std::array<uint8_t, kLargeBlock> codes{};
};

constexpr int kMostMultiple = 63;

// The multiples with the least error among the neighbours of the fitted ones.
void choose_multiples(SmallValues values, SmallValues weights, const GroupFit& fit, int steps,
                      size_t group, RangedBlock& block) {
  const int scale = nearest_code(fit.scale, block.factor, 0, kMostMultiple);
  const int minimum = nearest_code(-fit.offset, block.minimum_factor, 0, kMostMultiple);
  float least = INFINITY;
  for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, kMostMultiple); ++s) {
    for (int m = std::max(minimum - 2, 0); m <= std::min(minimum + 2, kMostMultiple); ++m) {
      const float error = fit_error(values, weights, block.factor * static_cast<float>(s),
                                    -block.minimum_factor * static_cast<float>(m), 0, steps);
      if (!(error < least)) continue;
      least = error;
      block.scales[group] = static_cast<uint8_t>(s);
      block.minima[group] = static_cast<uint8_t>(m);
    }
  }
}

using RangeFits = std::array<GroupFit, 8>;

SmallValues group_of(LargeValues values, size_t group) {
  return SmallValues(values.data() + group * kSmallBlock, kSmallBlock);
}

// The multiples and codes with these factors, which halves hold.
RangedBlock with_factors(LargeValues values, LargeValues weights, const RangeFits& fits, int steps,
                         float factor, float minimum_factor) {
  RangedBlock block{.factor = factor, .minimum_factor = minimum_factor};
  for (size_t g = 0; g < fits.size(); ++g) {
    const SmallValues group = group_of(values, g), group_weights = group_of(weights, g);
    choose_multiples(group, group_weights, fits[g], steps, g, block);
    const float scale = block.factor * static_cast<float>(block.scales[g]);
    const float offset = -block.minimum_factor * static_cast<float>(block.minima[g]);
    block.error += fit_error(group, group_weights, scale, offset, 0, steps);
    for (size_t i = 0; i < kSmallBlock; ++i) {
      block.codes[g * kSmallBlock + i] =
          static_cast<uint8_t>(nearest_code(group[i] - offset, scale, 0, steps));
    }
  }
  return block;
}

// The least squares of the factors for the block's multiples and codes.
std::pair<float, float> refined_factors(LargeValues values, LargeValues weights,
                                        const RangedBlock& block) {
  double ss = 0, sm = 0, mm = 0, sx = 0, mx = 0;
  for (size_t i = 0; i < kLargeBlock; ++i) {
    const size_t g = i / kSmallBlock;
    const double w = weights[i], x = values[i], m = block.minima[g];
    const double s = block.codes[i] * block.scales[g];
    ss += w * s * s;
    sm += w * s * m;
    mm += w * m * m;
    sx += w * s * x;
    mx += w * m * x;
  }
  const double determinant = ss * mm - sm * sm;
  if (!(determinant > 0)) return {ss > 0 ? static_cast<float>(sx / ss) : 0.0f, 0.0f};
  return {static_cast<float>((sx * mm - mx * sm) / determinant),
          static_cast<float>((sx * sm - mx * ss) / determinant)};
}

RangedBlock ranged_block(LargeValues values, LargeValues weights, int steps, uint8_t* head) {
  constexpr int kRefinements = 4;
  RangeFits fits;
  float most_scale = 0, most_minimum = 0;
  for (size_t g = 0; g < fits.size(); ++g) {
    fits[g] = fit_range(group_of(values, g), group_of(weights, g), steps, OffsetSign::not_positive);
    most_scale = std::max(most_scale, fits[g].scale);
    most_minimum = std::max(most_minimum, -fits[g].offset);
  }
  const float factor = put_half(most_scale / kMostMultiple, head);
  const float minimum_factor = put_half(most_minimum / kMostMultiple, head + 2);
  RangedBlock block = with_factors(values, weights, fits, steps, factor, minimum_factor);
  for (int i = 0; i < kRefinements; ++i) {
    const auto [finer, finer_minimum] = refined_factors(values, weights, block);
    std::array<uint8_t, 4> finer_head{};
    const float rounded = put_half(finer, finer_head.data());
    const float rounded_minimum = put_half(finer_minimum, finer_head.data() + 2);
    const bool is_usable = rounded > 0 && rounded_minimum >= 0 && std::isfinite(rounded) &&
                           std::isfinite(rounded_minimum);
    if (!is_usable) break;
    const RangedBlock other = with_factors(values, weights, fits, steps, rounded, rounded_minimum);
    if (other.error >= block.error) break;
    block = other;
    std::ranges::copy(finer_head, head);
  }
  return block;
}

// Eight scales and eight minima of 6 bits in 12 bytes.
void put_multiples(const RangedBlock& block, uint8_t* bytes) {
  for (size_t i = 0; i < 4; ++i) {
    const int scale = block.scales[4 + i], minimum = block.minima[4 + i];
    bytes[i] = static_cast<uint8_t>(block.scales[i] | scale >> 4 << 6);
    bytes[4 + i] = static_cast<uint8_t>(block.minima[i] | minimum >> 4 << 6);
    bytes[8 + i] = static_cast<uint8_t>((scale & 15) | (minimum & 15) << 4);
  }
}

void put_block_nibbles(const RangedBlock& block, uint8_t* bytes) {
  const std::span<const uint8_t> codes(block.codes);
  for (size_t i = 0; i < 4; ++i) put_nibbles(codes.subspan(64 * i, 64), bytes + 32 * i);
}

void write_q4_k(LargeValues values, LargeValues weights, uint8_t* bytes) {
  const RangedBlock block = ranged_block(values, weights, 15, bytes);
  put_multiples(block, bytes + 4);
  put_block_nibbles(block, bytes + 16);
}

void write_q5_k(LargeValues values, LargeValues weights, uint8_t* bytes) {
  const RangedBlock block = ranged_block(values, weights, 31, bytes);
  put_multiples(block, bytes + 4);
  std::fill_n(bytes + 16, 32, uint8_t{0});
  for (size_t i = 0; i < kLargeBlock; ++i) {
    uint8_t& plane = bytes[16 + i % 32];
    plane = static_cast<uint8_t>(plane | (block.codes[i] >> 4 & 1) << (i / 32));
  }
  put_block_nibbles(block, bytes + 48);
}

void write_q6_k(LargeValues values, LargeValues weights, uint8_t* bytes) {
  constexpr size_t kGroup = 16;
  constexpr int kLow = -32, kHigh = 31, kLowMultiple = -128, kHighMultiple = 127;
  std::array<GroupFit, kLargeBlock / kGroup> fits;
  float edge = 0;
  for (size_t g = 0; g < fits.size(); ++g) {
    fits[g] = fit_symmetric(values.subspan(g * kGroup, kGroup), weights.subspan(g * kGroup, kGroup),
                            kLow, kHigh);
    if (std::abs(fits[g].scale) > std::abs(edge)) edge = fits[g].scale;
  }
  const float factor = put_half(edge / kLowMultiple, bytes + 208);
  std::array<uint8_t, kLargeBlock> codes{};
  for (size_t g = 0; g < fits.size(); ++g) {
    const auto group = values.subspan(g * kGroup, kGroup);
    const auto group_weights = weights.subspan(g * kGroup, kGroup);
    const int near = nearest_code(fits[g].scale, factor, kLowMultiple, kHighMultiple);
    int best = near;
    float least = INFINITY;
    for (int m = std::max(near - 1, kLowMultiple); m <= std::min(near + 1, kHighMultiple); ++m) {
      const float error =
          fit_error(group, group_weights, factor * static_cast<float>(m), 0, kLow, kHigh);
      if (error < least) {
        least = error;
        best = m;
      }
    }
    bytes[192 + g] = static_cast<uint8_t>(static_cast<int8_t>(best));
    const float scale = factor * static_cast<float>(best);
    for (size_t i = 0; i < kGroup; ++i) {
      codes[g * kGroup + i] =
          static_cast<uint8_t>(nearest_code(group[i], scale, kLow, kHigh) - kLow);
    }
  }
  const std::span<const uint8_t> all(codes);
  for (size_t half = 0; half < 2; ++half) {
    const auto part = all.subspan(128 * half, 128);
    put_nibbles(part, bytes + 64 * half);
    for (size_t i = 0; i < 32; ++i) {
      bytes[128 + 32 * half + i] = static_cast<uint8_t>(
          part[i] >> 4 | part[32 + i] >> 4 << 2 | part[64 + i] >> 4 << 4 | part[96 + i] >> 4 << 6);
    }
  }
}

bool is_finite_half(const uint8_t* at) {
  Float16 half{};
  std::memcpy(&half.bits, at, sizeof(half.bits));
  return std::isfinite(to_float(half));
}

template <class Write>
bool write_small_blocks(std::span<const float> values, size_t block_bytes, bool has_minimum,
                        uint8_t* row, const Write& write) {
  for (size_t i = 0; i < values.size(); i += kSmallBlock, row += block_bytes) {
    write(SmallValues(values.data() + i, kSmallBlock), row);
    if (!is_finite_half(row) || (has_minimum && !is_finite_half(row + 2))) return false;
  }
  return true;
}

template <class Write>
bool write_large_blocks(std::span<const float> values, std::span<const float> importance,
                        size_t block_bytes, std::span<const size_t> factors_at, uint8_t* row,
                        const Write& write) {
  std::array<float, kLargeBlock> equal{};
  equal.fill(1.0f);
  for (size_t i = 0; i < values.size(); i += kLargeBlock, row += block_bytes) {
    const float* const weights = importance.empty() ? equal.data() : importance.data() + i;
    write(LargeValues(values.data() + i, kLargeBlock), LargeValues(weights, kLargeBlock), row);
    for (const size_t at : factors_at) {
      if (!is_finite_half(row + at)) return false;
    }
  }
  return true;
}

template <class T>
bool write_plain(std::span<const float> values, std::byte* row) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T rounded = from_float<T>(values[i]);
    if (!std::isfinite(to_float(rounded))) return false;
    std::memcpy(row + i * sizeof(T), &rounded, sizeof(T));
  }
  return true;
}

}  // namespace

bool can_write_gguf_type(GgufType type) {
  constexpr GgufType kWritten[] = {GgufType::f32,  GgufType::f16,  GgufType::bf16, GgufType::q4_0,
                                   GgufType::q5_0, GgufType::q5_1, GgufType::q8_0, GgufType::q4_k,
                                   GgufType::q5_k, GgufType::q6_k};
  return std::ranges::find(kWritten, type) != std::end(kWritten);
}

size_t gguf_row_bytes(GgufType type, int64_t length) {
  const GgufTypeLayout& layout = layout_of(type);
  return static_cast<size_t>(length) / layout.block_elements * layout.block_bytes;
}

bool quantize_gguf_row(GgufType type, std::span<const float> values,
                       std::span<const float> importance, std::byte* row) {
  const GgufTypeLayout& layout = layout_of(type);
  PL_CHECK(can_write_gguf_type(type), "a type that is written");
  PL_CHECK(values.size() % layout.block_elements == 0, "rows of whole blocks");
  PL_CHECK(importance.empty() || importance.size() == values.size(), "a weight for each element");
  if (type == GgufType::f32) return write_plain<float>(values, row);
  if (type == GgufType::f16) return write_plain<Float16>(values, row);
  if (type == GgufType::bf16) return write_plain<BFloat16>(values, row);
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return false;
  auto* const bytes = reinterpret_cast<uint8_t*>(row);
  const auto small = [&](auto write, bool has_minimum = false) {
    return write_small_blocks(values, layout.block_bytes, has_minimum, bytes, write);
  };
  const auto large = [&](auto write, std::initializer_list<size_t> factors_at) {
    return write_large_blocks(values, importance, layout.block_bytes, factors_at, bytes, write);
  };
  switch (type) {
    case GgufType::q4_0:
      return small(write_q4_0);
    case GgufType::q5_0:
      return small(write_q5_0);
    case GgufType::q5_1:
      return small(write_q5_1, true);
    case GgufType::q8_0:
      return small(write_q8_0);
    case GgufType::q4_k:
      return large(write_q4_k, {0, 2});
    case GgufType::q5_k:
      return large(write_q5_k, {0, 2});
    default:
      return large(write_q6_k, {208});
  }
}

}  // namespace paceline
