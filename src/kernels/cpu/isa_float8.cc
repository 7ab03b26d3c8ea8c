// Matrices of E4M3 with scales: an element is its code times its scale, rounded to bfloat16. A few
// rows are multiplied by the codes as they are read; for many rows panels are expanded first, with
// the same bits.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/tile_sums.h"
#include "kernels/packed_groups.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int kFloat8Vectors = static_cast<int>(kPanelWidth) / kLanes;  // of a panel
constexpr int kMostFloat8Vectors = kFloat8Vectors > 4 ? kFloat8Vectors : 4;
constexpr int64_t kMostFloat8Rows = 8;
constexpr int64_t kFloat8ScaleBytes = kPanelWidth * 4;
constexpr float kLeastFloat8 = 0x1p-9f;

// One number a lane. NaN is no code here: pack_groups() gives its scale that value.
PL_INLINE Vec float8_numbers(Uints codes) {
  const Uints magnitude = codes & 0x7Fu;
  const Vec small = __builtin_convertvector((Ints)magnitude, Vec) * splat(kLeastFloat8);
  const Uints normal = (magnitude << 20) + (120u << 23);  // from a bias of 7 to one of 127
  const Uints value = magnitude < 8u ? as_bits(small) : normal;
  return as_floats(value | ((codes & 0x80u) << 24));
}

// The two codes of each column, the first in the low byte.
PL_INLINE Uints load_float8_pairs(const char* from) {
  Bf16s pairs;
  __builtin_memcpy(&pairs, from, sizeof(pairs));
  return widen_bits(pairs);
}

PL_INLINE Vec load_float8_scales(const char* record, int64_t lane) {
  return load(reinterpret_cast<const float*>(record) + lane);
}

#if defined(PACELINE_ISA_AVX512BF16)

// A vector holds two elements of 8 columns, as pairs of bfloat16 do. E4M3 with its exponent in the
// place of float16's is 2^-8 of the number, which scales make up for.
struct Float8Weights {
  static constexpr int kFactors = 1;
  struct Scales {
    Vec low, high;  // of columns 0 to 7 and 8 to 15, each twice
  };
  struct Pairs {
    Uints bits;
  };

  PL_INLINE Scales load_scales(const char* record, int64_t lane) {
    const Vec scales = load_float8_scales(record, lane) * splat(0x1p8f);
    return {interleave_low(scales, scales), interleave_high(scales, scales)};
  }
  // Denormals become zeros, which they are to products.
  PL_INLINE Pairs read(const char* codes, const Scales& scales) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i_u*)codes);
    const __m512i words = _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, bytes);
    const Vec halves = as_floats((Uints)_mm512_slli_epi16(words, 7) & 0xBFFFBFFFu);
    const Vec low = widen(low_half(halves)) * scales.low;
    const Vec high = widen(high_half(halves)) * scales.high;
    return {(Uints)_mm512_cvtne2ps_pbh(high, low)};
  }
  template <int kFactor>
  PL_INLINE Uints factor(const Pairs& pairs) {
    return pairs.bits;
  }

 private:
  PL_INLINE Vec widen(__m256 halves) {
    return _mm512_maskz_cvtph_ps(kAllLanes, _mm256_castps_si256(halves));
  }
};

#else

// The two numbers of each column, times kFloat8Unit.
#if defined(__AVX512F__)
constexpr float kFloat8Unit = 0x1p-8f;  // of E4M3 with its exponent in the place of float16's
PL_INLINE void read_float8_pairs(const char* codes, Vec& first, Vec& second) {
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i_u*)codes), order);
  const __m512i words =
      _mm512_maskz_cvtepi8_epi16(~__mmask32{0}, _mm256_permute4x64_epi64(bytes, 0xD8));
  const Vec halves = as_floats((Uints)_mm512_slli_epi16(words, 7) & 0xBFFFBFFFu);
  first = _mm512_maskz_cvtph_ps(kAllLanes, _mm256_castps_si256(low_half(halves)));
  second = _mm512_maskz_cvtph_ps(kAllLanes, _mm256_castps_si256(high_half(halves)));
}
#elif defined(__AVX2__)
constexpr float kFloat8Unit = 0x1p-8f;
PL_INLINE void read_float8_pairs(const char* codes, Vec& first, Vec& second) {
  const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  const __m128i bytes = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i_u*)codes), order);
  const __m256i words = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7);
  const __m256i halves = _mm256_and_si256(words, _mm256_set1_epi16(static_cast<int16_t>(0xBFFF)));
  first = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
  second = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
}
#else
constexpr float kFloat8Unit = 1.0f;
PL_INLINE void read_float8_pairs(const char* codes, Vec& first, Vec& second) {
  const Uints pairs = load_float8_pairs(codes);
  first = float8_numbers(pairs & 0xFFu);
  second = float8_numbers(pairs >> 8);
}
#endif

struct Float8Weights {
  static constexpr int kFactors = 2;
  using Scales = Vec;
  struct Pairs {
    Vec first, second;
  };

  PL_INLINE Scales load_scales(const char* record, int64_t lane) {
    return load_float8_scales(record, lane) * splat(1.0f / kFloat8Unit);
  }
  PL_INLINE Pairs read(const char* codes, const Scales& scales) {
    Vec first, second;
    read_float8_pairs(codes, first, second);
    return {round(first * scales), round(second * scales)};
  }
  template <int kFactor>
  PL_INLINE Vec factor(const Pairs& pairs) {
    return kFactor == 0 ? pairs.first : pairs.second;
  }

 private:
  // A NaN, which only a scale makes, has no low bits and stays one.
  PL_INLINE Vec round(Vec value) {
    const Uints bits = as_bits(value);
    return as_floats((bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u);
  }
};

#endif

// A tile of sums over one segment of K.
struct Float8Tile {
  const Bf16Product::Input* inputs;  // the tile's first row at the segment's start
  int64_t input_stride;              // elements
  const char* records;               // of the first panel, at the segment's start
  int64_t lane;                      // the first column in that panel
  int64_t panel_bytes;
  int64_t group_size;
  int64_t num_groups;
  TileOutputs to;
  int64_t prefetch_bytes;
};

// As multiply_tile() of bfloat16: from zero, in ascending order.
template <int kRows, int kVectors>
void multiply_float8_tile(const Float8Tile& tile) {
  const int64_t group_size = tile.group_size, panel_bytes = tile.panel_bytes;
  const int64_t input_stride = tile.input_stride, distance = tile.prefetch_bytes;
  const Bf16Product::Input* inputs = tile.inputs;
  const char* record = tile.records;
  Vec sums[kRows][kVectors] = {};
  for (int64_t g = 0; g < tile.num_groups; ++g) {
    Float8Weights::Scales scales[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const char* const panel = record + v / kFloat8Vectors * panel_bytes;
      scales[v] = Float8Weights::load_scales(panel, tile.lane + v % kFloat8Vectors * kLanes);
    }
    const char* codes = record + kFloat8ScaleBytes + tile.lane * 2;
    for (int64_t k = 0; k < group_size; k += 2) {
      Float8Weights::Pairs pairs[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const char* const from =
            codes + v / kFloat8Vectors * panel_bytes + v % kFloat8Vectors * kLanes * 2;
        pairs[v] = Float8Weights::read(from, scales[v]);
        if (v % kFloat8Vectors == 0) __builtin_prefetch(from + distance);
      }
      const auto add_factor = [&]<int kFactor>() __attribute__((always_inline)) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const auto x = Bf16Product::input<kFactor>(inputs + r * input_stride);
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) {
            sums[r][v] =
                Bf16Product::multiply_add(sums[r][v], x, Float8Weights::factor<kFactor>(pairs[v]));
          }
        }
      };
      add_factor.template operator()<0>();
      if constexpr (Float8Weights::kFactors == 2) add_factor.template operator()<1>();
      codes += kPanelWidth * 2;
      inputs += Bf16Product::kInputsPerStep;
    }
    record += kFloat8ScaleBytes + group_size * kPanelWidth;
  }
  store_sums(tile.to, sums);
}

#if defined(PACELINE_ISA_AVX512BF16)

// Where all columns of a panel share a scale, 128 magnitudes times that scale are a table of bytes,
// which processors with VBMI look 64 codes up in at once. The set of instructions doesn't require
// them, so functions that use them say so.
#define PL_VBMI __attribute__((target("avx512vbmi")))

struct Float8Magnitudes {
  float values[128];
};
constexpr Float8Magnitudes make_float8_magnitudes() {
  Float8Magnitudes magnitudes = {};
  for (int code = 0; code < 128; ++code) {
    const int exponent = code >> 3;
    float value = static_cast<float>(exponent == 0 ? code : 8 + (code & 7)) * kLeastFloat8;
    for (int i = 1; i < exponent; ++i) value *= 2.0f;
    magnitudes.values[code] = value;
  }
  return magnitudes;
}
alignas(64) constexpr Float8Magnitudes kFloat8Magnitudes = make_float8_magnitudes();

// The low and the high bytes of magnitudes 0 to 63 and 64 to 127.
struct Float8Table {
  __m512i low[2];
  __m512i high[2];
};

PL_INLINE __m512i join_halves(__m256i low, __m256i high) {
  return (__m512i)__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

PL_INLINE Float8Table make_float8_table(float scale) {
  const auto magnitudes = [&](int vector) __attribute__((always_inline)) {
    return load(kFloat8Magnitudes.values + vector * kLanes) * splat(scale);
  };
  Float8Table table;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m256i low[2], high[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const int vector = half * 4 + i * 2;
      const auto words = (__m512i)_mm512_cvtne2ps_pbh(magnitudes(vector + 1), magnitudes(vector));
      low[i] = _mm512_maskz_cvtepi16_epi8(~__mmask32{0}, words);
      high[i] = _mm512_maskz_cvtepi16_epi8(~__mmask32{0}, _mm512_srli_epi16(words, 8));
    }
    table.low[half] = join_halves(low[0], low[1]);
    table.high[half] = join_halves(high[0], high[1]);
  }
  return table;
}

// Two elements of each column as pairs of bfloat16: those of columns 0 to 3, 8 to 11, 16 to 19 and
// 24 to 27, and those of the others.
PL_VBMI PL_INLINE void look_float8_up(const Float8Table& table, const char* codes,
                                      Uints (&pairs)[2]) {
  constexpr int kXorOfAnd = 0x78;  // of the sign
  const auto bytes = (__m512i)load_bits(codes);
  const __m512i low = _mm512_permutex2var_epi8(table.low[0], bytes, table.low[1]);
  const __m512i magnitude = _mm512_permutex2var_epi8(table.high[0], bytes, table.high[1]);
  const __m512i high =
      _mm512_ternarylogic_epi32(magnitude, bytes, (__m512i)splat_bits(0x80808080u), kXorOfAnd);
  pairs[0] = (Uints)_mm512_unpacklo_epi8(low, high);
  pairs[1] = (Uints)_mm512_unpackhi_epi8(low, high);
}

// Puts the sums of such pairs in the order of columns.
PL_INLINE void order_columns(Vec& first, Vec& second) {
  const Vec low = first, high = second;
  first =
      __builtin_shufflevector(low, high, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  second = __builtin_shufflevector(low, high, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29,
                                   30, 31);
}

// multiply_float8_tile() of whole panels whose columns share a scale in each group.
template <int kRows, int kPanels>
PL_VBMI void multiply_float8_panels(const Float8Tile& tile) {
  const int64_t group_size = tile.group_size, panel_bytes = tile.panel_bytes;
  const int64_t input_stride = tile.input_stride, distance = tile.prefetch_bytes;
  const Bf16Product::Input* inputs = tile.inputs;
  const char* record = tile.records;
  Vec sums[kRows][2 * kPanels] = {};
  for (int64_t g = 0; g < tile.num_groups; ++g) {
    Float8Table tables[kPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      tables[p] = make_float8_table(load_one<float>(record + p * panel_bytes));
    }
    const char* codes = record + kFloat8ScaleBytes;
    for (int64_t k = 0; k < group_size; k += 2) {
      Uints pairs[kPanels][2];
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        look_float8_up(tables[p], codes + p * panel_bytes, pairs[p]);
        __builtin_prefetch(codes + p * panel_bytes + distance);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Uints x = splat_bits(inputs[r * input_stride]);
#pragma GCC unroll 4
        for (int v = 0; v < 2 * kPanels; ++v) {
          sums[r][v] = Bf16Product::multiply_add(sums[r][v], x, pairs[v / 2][v % 2]);
        }
      }
      codes += kPanelWidth * 2;
      ++inputs;
    }
    record += kFloat8ScaleBytes + group_size * kPanelWidth;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) order_columns(sums[r][2 * p], sums[r][2 * p + 1]);
  }
  store_sums(tile.to, sums);
}

bool columns_share_scales(const Float8Tile& tile, int64_t num_panels) {
  constexpr int64_t kLeastGroup = 64;  // a table takes as long as some 16 elements of K
  if (tile.group_size < kLeastGroup) return false;
  for (int64_t g = 0; g < tile.num_groups; ++g) {
    for (int64_t p = 0; p < num_panels; ++p) {
      const char* const scales = tile.records + p * tile.panel_bytes +
                                 g * (kFloat8ScaleBytes + tile.group_size * kPanelWidth);
      const Uints first = splat_bits(load_one<uint32_t>(scales));
      const Uints differences =
          (load_bits(scales) ^ first) | (load_bits(scales + kFloat8ScaleBytes / 2) ^ first);
      if (_mm512_test_epi32_mask((__m512i)differences, (__m512i)differences) != 0) return false;
    }
  }
  return true;
}

template <int kVectors, int kRows>
void multiply_float8(const Float8Tile& tile) {
  constexpr int kPanels = kVectors / kFloat8Vectors;
  static const bool has_vbmi = __builtin_cpu_supports("avx512vbmi") != 0;
  if (has_vbmi && columns_share_scales(tile, kPanels)) {
    multiply_float8_panels<kRows, kPanels>(tile);
  } else {
    multiply_float8_tile<kRows, kVectors>(tile);
  }
}

#else

template <int kVectors, int kRows>
void multiply_float8(const Float8Tile& tile) {
  multiply_float8_tile<kRows, kVectors>(tile);
}

#endif

// The most vectors that a tile of `num_rows` rows may have if its sums are to stay in registers,
// and the most rows that a tile of `vectors` may have.
constexpr int64_t float8_vectors(int64_t num_rows) {
  int64_t vectors = kMostFloat8Vectors;
  while (vectors > 2 && vectors * num_rows > kAccumulators) vectors /= 2;
  return vectors;
}
constexpr int tallest_float8(int vectors) {
  return static_cast<int>(min_of(kMostFloat8Rows, kAccumulators / vectors));
}

template <int kVectors, int kRows = tallest_float8(kVectors)>
void multiply_float8_rows(int64_t num_rows, const Float8Tile& tile) {
  if constexpr (kRows > 0) {
    if (num_rows == kRows) {
      multiply_float8<kVectors, kRows>(tile);
    } else {
      multiply_float8_rows<kVectors, kRows - 1>(num_rows, tile);
    }
  }
}

// All rows of a task times some vectors of columns, in tiles that are nearly equally tall.
template <int kVectors>
void multiply_float8_columns(int64_t num_rows, Float8Tile tile) {
  constexpr int64_t kTallest = tallest_float8(kVectors);
  const int64_t tiles = (num_rows + kTallest - 1) / kTallest;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t tile_rows = num_rows / tiles + (i < num_rows % tiles ? 1 : 0);
    multiply_float8_rows<kVectors>(tile_rows, tile);
    tile.inputs += tile_rows * tile.input_stride;
    tile.to.out += tile_rows * tile.to.out_stride;
  }
}

void multiply_float8_vectors(const GroupTask& task, int64_t vector, int64_t num_vectors) {
  constexpr auto kInputBytes = static_cast<int64_t>(sizeof(Bf16Product::Input));
  const GroupPanels& weights = task.weights;
  const int64_t record_bytes = kFloat8ScaleBytes + weights.group_size * kPanelWidth;
  const int64_t column = vector * kLanes;
  const char* const panel = static_cast<const char*>(weights.panels) +
                            vector / kFloat8Vectors * weights.panel_bytes + kPanelHeadBytes;
  for (int64_t k = 0; k < weights.k; k += kSegmentLength) {
    const int64_t last_k = min_of(k + kSegmentLength, weights.k);
    const bool has_bias = last_k == weights.k && task.bias != nullptr;
    const Float8Tile tile = {.inputs = static_cast<const Bf16Product::Input*>(task.inputs) +
                                       k / Bf16Product::kDepth * Bf16Product::kInputsPerStep,
                             .input_stride = task.input_stride / kInputBytes,
                             .records = panel + k / weights.group_size * record_bytes,
                             .lane = vector % kFloat8Vectors * kLanes,
                             .panel_bytes = weights.panel_bytes,
                             .group_size = weights.group_size,
                             .num_groups = (last_k - k) / weights.group_size,
                             .to = {.out = task.out + column,
                                    .out_stride = task.out_stride,
                                    .num_columns = task.n - column,
                                    .bias = has_bias ? task.bias + column : nullptr,
                                    .adds = k > 0},
                             .prefetch_bytes = task.streams.prefetch_bytes};
    if constexpr (kMostFloat8Vectors >= 8) {
      if (num_vectors == 8) {
        multiply_float8_columns<8>(task.num_rows, tile);
        continue;
      }
    }
    if (num_vectors == 4) {
      multiply_float8_columns<4>(task.num_rows, tile);
    } else {
      multiply_float8_columns<2>(task.num_rows, tile);
    }
  }
}

int64_t float8_stream_panels(int64_t num_rows) {
  return max_of(float8_vectors(num_rows) / kFloat8Vectors, 1);
}

void matmul_float8(const GroupTask& task) {
  const int64_t most = min_of(float8_vectors(task.num_rows), task.streams.panels * kFloat8Vectors);
  const int64_t end = task.last_panel * kFloat8Vectors;
  for (int64_t vector = task.first_panel * kFloat8Vectors; vector < end;) {
    int64_t num_vectors = most;
    while (num_vectors > end - vector) num_vectors /= 2;
    multiply_float8_vectors(task, vector, num_vectors);
    vector += num_vectors;
  }
}

}  // namespace

void expand_float8(const GroupPanels& weights, int64_t panel, int64_t first, int64_t count,
                   void* bf16_panel) {
  const int64_t size = weights.group_size;
  const char* record = static_cast<const char*>(weights.panels) + panel * weights.panel_bytes +
                       kPanelHeadBytes + first / size * (kFloat8ScaleBytes + size * kPanelWidth);
  auto* to = static_cast<uint32_t*>(bf16_panel);
  for (int64_t g = 0; g < count / size; ++g) {
    const char* codes = record + kFloat8ScaleBytes;
    for (int64_t k = 0; k < size; k += 2) {
      for (int64_t lane = 0; lane < kPanelWidth; lane += kLanes) {
        const Vec scales = load_float8_scales(record, lane);
        const Uints pairs = load_float8_pairs(codes + lane * 2);
        const Uints values = pair_of_bf16(float8_numbers(pairs & 0xFFu) * scales,
                                          float8_numbers(pairs >> 8) * scales);
        __builtin_memcpy(to + lane, &values, sizeof(values));
      }
      codes += kPanelWidth * 2;
      to += kPanelWidth;
    }
    record = codes;
  }
}

void embed_float8(const GroupPanels& weights, int64_t row, float scale, float* out) {
  const int64_t column = row % kPanelWidth;
  const char* record = static_cast<const char*>(weights.panels) +
                       row / kPanelWidth * weights.panel_bytes + kPanelHeadBytes;
  for (int64_t first = 0; first < weights.k; first += weights.group_size) {
    const Vec factor = splat(load_one<float>(record + column * 4));
    const char* const codes = record + kFloat8ScaleBytes;
    for (int64_t k = 0; k < weights.group_size; ++k) {
      const auto code = static_cast<uint8_t>(codes[float8_place(k, column)]);
      const Vec value = float8_numbers(splat_bits(code)) * factor;
      const Uints rounded = round_bits_to_bf16(value) << 16;
      out[first + k] = as_floats(rounded)[0] * scale;
    }
    record = codes + weights.group_size * kPanelWidth;
  }
}

void add_float8_kernels(KernelTable& table) {
  table.matmul_float8 = matmul_float8;
  table.float8_rows = kMostFloat8Rows;
  table.float8_stream_panels = float8_stream_panels;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
