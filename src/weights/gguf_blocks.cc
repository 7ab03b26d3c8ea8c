// The blocks' layouts are those of ggml (ggml-common.h) as gguf-py's quants.py reads them. A block
// of 32 elements is one group, one of 64 has four of 16; one of 256 has groups of 16 or 32 that
// share one or two half floats.
#include "weights/gguf_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/dtype.h"
#include "weights/gguf_grids.h"

namespace paceline {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks are read as they are");

float half_at(const uint8_t* at) {
  Float16 half{};
  std::memcpy(&half.bits, at, sizeof(half.bits));
  return to_float(half);
}

// codes[i] = low nibble of bytes[i], codes[count + i] = its high nibble.
template <int count>
void unpack_nibbles(const uint8_t* __restrict bytes, uint8_t* __restrict codes) {
  for (int i = 0; i < count; ++i) {
    codes[i] = bytes[i] & 0x0F;
    codes[count + i] = bytes[i] >> 4;
  }
}

// The K formats' two bits per element: 128 codes from 32 bytes, the lowest pairs first.
void unpack_pairs(const uint8_t* __restrict bytes, uint8_t* __restrict codes) {
  for (int i = 0; i < 32; ++i) {
    codes[i] = bytes[i] & 3;
    codes[32 + i] = (bytes[i] >> 2) & 3;
    codes[64 + i] = (bytes[i] >> 4) & 3;
    codes[96 + i] = bytes[i] >> 6;
  }
}

// Adds 16 to codes[i] where bit i of the 32 is set.
void add_fifth_bits(const uint8_t* __restrict bits, uint8_t* __restrict codes) {
  for (int i = 0; i < 4; ++i) {
    // Puts bit j into byte j, then 0x80 into each byte that isn't 0, shifted to 16.
    const uint64_t spread = (bits[i] * 0x0101010101010101u) & 0x8040201008040201u;
    const uint64_t sixteens = ((spread + 0x7F7F7F7F7F7F7F7Fu) & 0x8080808080808080u) >> 3;
    uint64_t eight_codes = 0;
    std::memcpy(&eight_codes, codes + 8 * i, sizeof(eight_codes));
    eight_codes |= sixteens;
    std::memcpy(codes + 8 * i, &eight_codes, sizeof(eight_codes));
  }
}

// Adds `value` (a power of two above every code) to codes[32 * bit + i] where that bit of bytes[i]
// is set: the K formats' plane of 32 bytes with one bit for each of 256 elements.
template <int value>
void add_bit_plane(const uint8_t* __restrict bytes, uint8_t* __restrict codes) {
  for (int bit = 0; bit < 8; ++bit) {
    for (int i = 0; i < 32; ++i) {
      codes[32 * bit + i] |= static_cast<uint8_t>(((bytes[i] >> bit) & 1) * value);
    }
  }
}

// The 16 values of IQ4's nibbles, plus 128 (kvalues_iq4nl of ggml-common.h).
constexpr uint8_t kIq4Codes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                   129, 141, 153, 166, 181, 197, 217, 241};

// Like unpack_nibbles, for 16 bytes.
void unpack_iq4(const uint8_t* __restrict bytes, uint8_t* __restrict codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = kIq4Codes[bytes[i] & 0x0F];
    codes[16 + i] = kIq4Codes[bytes[i] >> 4];
  }
}

// Twice the 16 numbers E2M1 of MXFP4 and NVFP4, plus 12.
constexpr uint8_t kE2m1Codes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

struct Q40 {
  static constexpr GgufType kType = GgufType::q4_0;
  static constexpr Grouping kGrouping{.bits = 4, .group_size = 32, .zero_point = 8};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block);
    unpack_nibbles<16>(block + 2, codes);
  }
};

struct Q41 {
  static constexpr GgufType kType = GgufType::q4_1;
  static constexpr Grouping kGrouping{.bits = 4, .group_size = 32};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block);
    to.offset_factors[0] = half_at(block + 2);
    unpack_nibbles<16>(block + 4, codes);
  }
};

struct Q50 {
  static constexpr GgufType kType = GgufType::q5_0;
  static constexpr Grouping kGrouping{.bits = 5, .group_size = 32, .zero_point = 16};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block);
    unpack_nibbles<16>(block + 6, codes);
    add_fifth_bits(block + 2, codes);
  }
};

struct Q51 {
  static constexpr GgufType kType = GgufType::q5_1;
  static constexpr Grouping kGrouping{.bits = 5, .group_size = 32};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block);
    to.offset_factors[0] = half_at(block + 2);
    unpack_nibbles<16>(block + 8, codes);
    add_fifth_bits(block + 4, codes);
  }
};

struct Q80 {
  static constexpr GgufType kType = GgufType::q8_0;
  static constexpr Grouping kGrouping{.bits = 8, .group_size = 32, .zero_point = 128};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block);
    for (int i = 0; i < 32; ++i) codes[i] = block[2 + i] ^ 0x80;  // signed, plus 128
  }
};

struct Iq4Nl {
  static constexpr GgufType kType = GgufType::iq4_nl;
  static constexpr Grouping kGrouping{.bits = 8, .group_size = 32, .zero_point = 128};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block);
    unpack_iq4(block + 2, codes);
  }
};

// scales [16], pairs [64], d, dmin.
struct Q2K {
  static constexpr GgufType kType = GgufType::q2_k;
  static constexpr Grouping kGrouping{
      .bits = 2, .group_size = 16, .zero_point = {}, .groups_per_factor = 16};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block + 80);
    to.offset_factors[0] = -half_at(block + 82);
    for (int i = 0; i < 16; ++i) {
      to.scales[i] = static_cast<int8_t>(block[i] & 0x0F);
      to.offsets[i] = static_cast<int8_t>(block[i] >> 4);
    }
    unpack_pairs(block + 16, codes);
    unpack_pairs(block + 48, codes + 128);
  }
};

// Third bits [32], pairs [64], scales [12], d. An unset third bit subtracts 4.
struct Q3K {
  static constexpr GgufType kType = GgufType::q3_k;
  static constexpr Grouping kGrouping{
      .bits = 4, .group_size = 16, .zero_point = 4, .groups_per_factor = 16};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block + 108);
    const uint8_t* low = block + 96;    // nibbles: groups 0 to 7, then 8 to 15
    const uint8_t* high = block + 104;  // pairs: groups 0 to 3, 4 to 7 and so on
    for (int i = 0; i < 16; ++i) {
      const int nibble = (low[i % 8] >> (4 * (i / 8))) & 0x0F;
      const int pair = (high[i % 4] >> (2 * (i / 4))) & 3;
      to.scales[i] = static_cast<int8_t>((nibble | (pair << 4)) - 32);
    }
    unpack_pairs(block + 32, codes);
    unpack_pairs(block + 64, codes + 128);
    add_bit_plane<4>(block, codes);
  }
};

// Scales and minima of Q4_K and Q5_K: 8 each, with 6 bits, in 12 bytes. The first four of each are
// in the low bits of bytes 0 to 3 and 4 to 7. The others have their low nibbles in bytes 8 to 11
// and their high pairs above the first four.
void decode_scales_and_minima(const uint8_t* block, GgufScales to) {
  to.factors[0] = half_at(block);
  to.offset_factors[0] = -half_at(block + 2);
  const uint8_t* packed = block + 4;
  for (int i = 0; i < 4; ++i) {
    const int scale = packed[i] & 0x3F;
    const int minimum = packed[4 + i] & 0x3F;
    const int later_scale = (packed[8 + i] & 0x0F) | ((packed[i] >> 2) & 0x30);
    const int later_minimum = (packed[8 + i] >> 4) | ((packed[4 + i] >> 2) & 0x30);
    to.scales[i] = static_cast<int8_t>(scale);
    to.offsets[i] = static_cast<int8_t>(minimum);
    to.scales[4 + i] = static_cast<int8_t>(later_scale);
    to.offsets[4 + i] = static_cast<int8_t>(later_minimum);
  }
}

// d, dmin, scales and minima [12], nibbles [128].
struct Q4K {
  static constexpr GgufType kType = GgufType::q4_k;
  static constexpr Grouping kGrouping{
      .bits = 4, .group_size = 32, .zero_point = {}, .groups_per_factor = 8};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    decode_scales_and_minima(block, to);
    for (int i = 0; i < 4; ++i) unpack_nibbles<32>(block + 16 + 32 * i, codes + 64 * i);
  }
};

// d, dmin, scales and minima [12], fifth bits [32], nibbles [128].
struct Q5K {
  static constexpr GgufType kType = GgufType::q5_k;
  static constexpr Grouping kGrouping{
      .bits = 5, .group_size = 32, .zero_point = {}, .groups_per_factor = 8};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    decode_scales_and_minima(block, to);
    for (int i = 0; i < 4; ++i) unpack_nibbles<32>(block + 48 + 32 * i, codes + 64 * i);
    add_bit_plane<16>(block + 16, codes);
  }
};

// Nibbles [128], high pairs [64], scales [16] signed, d.
struct Q6K {
  static constexpr GgufType kType = GgufType::q6_k;
  static constexpr Grouping kGrouping{
      .bits = 6, .group_size = 16, .zero_point = 32, .groups_per_factor = 16};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block + 208);
    for (int i = 0; i < 16; ++i) to.scales[i] = static_cast<int8_t>(block[192 + i]);
    for (int half = 0; half < 2; ++half) {
      uint8_t pairs[128];
      uint8_t* half_codes = codes + 128 * half;
      unpack_nibbles<64>(block + 64 * half, half_codes);
      unpack_pairs(block + 128 + 32 * half, pairs);
      for (int i = 0; i < 128; ++i) half_codes[i] |= static_cast<uint8_t>(pairs[i] << 4);
    }
  }
};

// d, high pairs of the scales (2 bytes), their low nibbles [4], nibbles [128].
struct Iq4Xs {
  static constexpr GgufType kType = GgufType::iq4_xs;
  static constexpr Grouping kGrouping{
      .bits = 8, .group_size = 32, .zero_point = 128, .groups_per_factor = 8};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = half_at(block);
    const int pairs = block[2] | (block[3] << 8);
    for (int i = 0; i < 8; ++i) {
      const int nibble = (block[4 + i / 2] >> (4 * (i % 2))) & 0x0F;
      const int pair = (pairs >> (2 * i)) & 3;
      to.scales[i] = static_cast<int8_t>((nibble | (pair << 4)) - 32);
      unpack_iq4(block + 8 + 16 * i, codes + 32 * i);
    }
  }
};

// A scale E8M0, nibbles [16]. Doubled numbers have half the scale; 255 isn't a NaN in ggml.
struct Mxfp4 {
  static constexpr GgufType kType = GgufType::mxfp4;
  static constexpr Grouping kGrouping{.bits = 5, .group_size = 32, .zero_point = 12};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    to.factors[0] = std::ldexp(1.0f, block[0] - 128);
    for (int i = 0; i < 16; ++i) {
      codes[i] = kE2m1Codes[block[1 + i] & 0x0F];
      codes[16 + i] = kE2m1Codes[block[1 + i] >> 4];
    }
  }
};

// A number E4M3 whose sign counts for nothing. 127 is 0, and 255 isn't a NaN, in ggml.
float unsigned_e4m3(uint8_t byte) {
  if (byte == 0x7F) return 0.0f;
  const int exponent = byte >> 3 & 0x0F, fraction = byte & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                       : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
}

// Scales [4] E4M3, then the nibbles [8] of each group of 16. Doubled numbers have half the scale.
struct Nvfp4 {
  static constexpr GgufType kType = GgufType::nvfp4;
  static constexpr Grouping kGrouping{.bits = 6, .group_size = 16, .zero_point = 12};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    for (int group = 0; group < 4; ++group) {
      to.factors[group] = 0.5f * unsigned_e4m3(block[group]);
      for (int i = 0; i < 8; ++i) {
        const uint8_t pair = block[4 + 8 * group + i];
        codes[16 * group + i] = kE2m1Codes[pair & 0x0F];
        codes[16 * group + 8 + i] = kE2m1Codes[pair >> 4];
      }
    }
  }
};

// The eighth of eight signs makes their number even.
uint8_t with_parity(uint32_t seven_signs) {
  return static_cast<uint8_t>(seven_signs | ((std::popcount(seven_signs) & 1u) << 7));
}

// Eight codes of two points: zero + the number, or zero - it where its sign's bit is set.
//   numbers  those that occur, by the grid's digits
void put_points(std::string_view grid, const uint8_t* __restrict numbers, int first, int second,
                uint8_t signs, int zero, uint8_t* __restrict codes) {
  for (int i = 0; i < 8; ++i) {
    const int point = i < 4 ? first : second;
    const int number = numbers[grid[static_cast<size_t>(4 * point + i % 4)] - '0'];
    codes[i] = static_cast<uint8_t>((signs >> i & 1) != 0 ? zero - number : zero + number);
  }
}

// d, points [64], then for each group of 32 elements 4 bits of scale and 4 times 7 signs. The
// numbers 4 to 62 are halved here, and d with the quarter that the format has.
struct Iq3Xxs {
  static constexpr GgufType kType = GgufType::iq3_xxs;
  static constexpr Grouping kGrouping{
      .bits = 6, .group_size = 32, .zero_point = 31, .groups_per_factor = 8};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    static constexpr uint8_t kNumbers[8] = {2, 6, 10, 14, 18, 22, 26, 31};
    to.factors[0] = 0.5f * half_at(block);
    for (int group = 0; group < 8; ++group) {
      uint32_t packed = 0;
      std::memcpy(&packed, block + 66 + 4 * group, sizeof(packed));
      to.scales[group] = static_cast<int8_t>(1 + 2 * (packed >> 28));
      for (int i = 0; i < 4; ++i) {
        const uint8_t* const points = block + 2 + 8 * group + 2 * i;
        put_points(kIq3XxsGrid, kNumbers, points[0], points[1],
                   with_parity(packed >> (7 * i) & 0x7F), 31, codes + 32 * group + 8 * i);
      }
    }
  }
};

// d, points [64], their ninth bits [8], signs [32], scales [4] of 4 bits.
struct Iq3S {
  static constexpr GgufType kType = GgufType::iq3_s;
  static constexpr Grouping kGrouping{
      .bits = 5, .group_size = 32, .zero_point = 15, .groups_per_factor = 8};
  static void decode(const uint8_t* block, uint8_t* __restrict codes, GgufScales to) {
    static constexpr uint8_t kNumbers[8] = {1, 3, 5, 7, 9, 11, 13, 15};
    to.factors[0] = half_at(block);
    for (int group = 0; group < 8; ++group) {
      const int scale = block[106 + group / 2] >> (4 * (group % 2)) & 0x0F;
      to.scales[group] = static_cast<int8_t>(1 + 2 * scale);
      for (int i = 0; i < 4; ++i) {
        const uint8_t* const points = block + 2 + 8 * group + 2 * i;
        const int ninth = block[66 + group] >> (2 * i);
        put_points(kIq3SGrid, kNumbers, points[0] | (ninth & 1) << 8, points[1] | (ninth & 2) << 7,
                   block[74 + 4 * group + i], 15, codes + 32 * group + 8 * i);
      }
    }
  }
};

template <int size>
void values_of(std::optional<int> zero_point, const uint8_t* __restrict codes, float scale,
               float offset, float* __restrict values) {
  if (!zero_point) {
    for (int i = 0; i < size; ++i) values[i] = scale * static_cast<float>(codes[i]) + offset;
    return;
  }
  const int zero = *zero_point;
  for (int i = 0; i < size; ++i) values[i] = scale * static_cast<float>(codes[i] - zero);
}

template <class Format>
constexpr GgufBlockFormat format_of() {
  return {Format::kType, Format::kGrouping,
          [](const std::byte* blocks, size_t num_blocks, uint8_t* codes, GgufScales scales) {
            constexpr GgufTypeLayout kLayout = layout_of(Format::kType);
            constexpr Grouping kGrouping = Format::kGrouping;
            constexpr size_t kFactors = kLayout.block_elements / kGrouping.factor_length();
            static_assert(kLayout.block_elements == kFactors * kGrouping.factor_length());
            const auto* block = reinterpret_cast<const uint8_t*>(blocks);
            for (size_t i = 0; i < num_blocks; ++i) {
              Format::decode(block, codes, scales);
              block += kLayout.block_bytes;
              codes += kLayout.block_elements;
              scales.factors += kFactors;
              if (!kGrouping.zero_point) scales.offset_factors += kFactors;
              if (!kGrouping.has_multiples()) continue;
              scales.scales += kGrouping.groups_per_factor;
              if (!kGrouping.zero_point) scales.offsets += kGrouping.groups_per_factor;
            }
          }};
}

constexpr std::array kFormats = {
    format_of<Q40>(),   format_of<Q41>(),    format_of<Q50>(),   format_of<Q51>(),
    format_of<Q80>(),   format_of<Q2K>(),    format_of<Q3K>(),   format_of<Q4K>(),
    format_of<Q5K>(),   format_of<Q6K>(),    format_of<Iq4Nl>(), format_of<Iq4Xs>(),
    format_of<Mxfp4>(), format_of<Iq3Xxs>(), format_of<Iq3S>(),  format_of<Nvfp4>()};

}  // namespace

std::span<const GgufBlockFormat> gguf_block_formats() { return kFormats; }

const GgufBlockFormat* find_block_format(GgufType type) {
  const auto* at = std::ranges::find(kFormats, type, &GgufBlockFormat::type);
  return at == kFormats.end() ? nullptr : at;
}

void group_scales(const Grouping& grouping, size_t num_groups, const GgufScales& stored,
                  float* scales, float* offsets) {
  const auto shared = static_cast<size_t>(grouping.groups_per_factor);
  for (size_t g = 0; g < num_groups; ++g) {
    const auto value = [&](const float* factors, const int8_t* multiples) {
      return shared > 1 ? factors[g / shared] * static_cast<float>(multiples[g]) : factors[g];
    };
    scales[g] = value(stored.factors, stored.scales);
    offsets[g] = grouping.zero_point ? -static_cast<float>(*grouping.zero_point) * scales[g]
                                     : value(stored.offset_factors, stored.offsets);
  }
}

void grouped_values(const Grouping& grouping, const uint8_t* codes, float scale, float offset,
                    float* values) {
  if (grouping.group_size == 16) {
    values_of<16>(grouping.zero_point, codes, scale, offset, values);
  } else {
    values_of<32>(grouping.zero_point, codes, scale, offset, values);
  }
}

}  // namespace paceline
