// Kernels beside quantised products: inputs rounded to 8 bits, panels expanded to bfloat16, rows of
// a quantised embedding.
#include "kernels/cpu/group_layout.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/panel_codes.h"
#include "kernels/packed_layout.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr int64_t kPanelVectors = kPanelWidth / kLanes;
constexpr int64_t kMaxGroupSize = 128;
constexpr float kMaxCode = 127.0f;

// Rounds to nearest, ties to even, by adding a number whose last place is one: |value| < 2^22.
PL_INLINE Ints round_to_ints(Vec value) {
  const Vec magic = splat(0x1.8p23f);
  return (Ints)(value + magic) - (Ints)magic;
}

// The bits of |value|: as integers they are in the order of the magnitudes, with infinity and NaN
// last.
PL_INLINE Uints magnitude_bits(Vec value) { return as_bits(value) & 0x7FFFFFFFu; }
constexpr uint32_t kInfinityBits = 0x7F800000u;

PL_INLINE Uints larger(Uints a, Uints b) { return a > b ? a : b; }

bool is_finite(Uints magnitudes) {
  uint32_t above = 0;
  for (int lane = 0; lane < kLanes; ++lane) above |= magnitudes[lane] >= kInfinityBits ? 1u : 0u;
  return above == 0;
}

// Codes of one group: x * inverse rounded. Returns their sum.
PL_INLINE int32_t round_group(const float* x, int64_t size, float inverse, int8_t* codes) {
  const Vec factor = splat(inverse);
  Ints sums = {};
  for (int64_t i = 0; i < size; i += kLanes) {
    const Vec scaled = min(max(load(x + i) * factor, splat(-kMaxCode)), splat(kMaxCode));
    const Ints rounded = round_to_ints(scaled);
    sums = sums + rounded;
    store_codes(codes + i, rounded);
  }
  return static_cast<int32_t>(reduce_add(__builtin_convertvector(sums, Vec)));
}

// One scale per `length` elements: the largest magnitude / 127, or NaN where an element isn't
// finite. scales[] holds each `copies` times.
void find_scales(const float* x, int64_t length, int64_t count, int64_t copies, float* scales) {
  const auto set = [&](int64_t at, float scale) {
    for (int64_t i = 0; i < copies; ++i) scales[at * copies + i] = scale;
  };
  Uints all = {};
  for (int64_t s = 0; s < count; ++s) {
    Uints largest = magnitude_bits(load(x + s * length));
    for (int64_t i = kLanes; i < length; i += kLanes) {
      largest = larger(largest, magnitude_bits(load(x + s * length + i)));
    }
    all = larger(all, largest);
    set(s, reduce_max(as_floats(largest)) / kMaxCode);
  }
  if (is_finite(all)) return;
  for (int64_t s = 0; s < count; ++s) {
    Uints largest = {};
    for (int64_t i = 0; i < length; i += kLanes) {
      largest = larger(largest, magnitude_bits(load(x + s * length + i)));
    }
    if (!is_finite(largest)) set(s, __builtin_nanf(""));
  }
}

void quantize_row(const float* x, const GroupPanels& weights, int64_t first, int64_t count,
                  void* input) {
  const int64_t size = weights.group_size, groups = count / size;
  auto* codes_to = static_cast<char*>(input);
  auto* const scales =
      reinterpret_cast<float*>(codes_to + input_code_bytes(weights)) + first / size;
  auto* const starts = reinterpret_cast<int32_t*>(scales + num_groups(weights));
  // Only one of the two is written.
  auto* const sums = scales + 2 * num_groups(weights);
  auto* const code_sums = reinterpret_cast<int16_t*>(sums - first / size) + first / size;
  const int64_t length = weights.input_length;
  codes_to += input_code_bytes(weights, first);
  const int32_t zero_point = weights.has_offsets ? 0 : weights.zero_point;
  alignas(64) int8_t codes[kMaxGroupSize];
  find_scales(x, length, count / length, length / size, scales);
  for (int64_t g = 0; g < groups; ++g) {
    const float scale = scales[g];
    const int32_t sum = round_group(x + g * size, size, scale > 0.0f ? 1.0f / scale : 0.0f, codes);
    starts[g] = -zero_point * sum;
    if (weights.groups_per_factor > 1) {
      code_sums[g] = static_cast<int16_t>(sum);
    } else {
      sums[g] = length > size ? static_cast<float>(sum) : scale * static_cast<float>(sum);
    }
    with_product(weights.bits, [&](auto product) { product.store_inputs(codes, size, codes_to); });
    codes_to += input_code_bytes(weights, size);
  }
}

void prefetch_row(const GroupPanels& weights, int64_t first, int64_t count, void* input) {
  const auto prefetch = [](const char* begin, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(begin + i, 1);
    __builtin_prefetch(begin + bytes - 1, 1);
  };
  const auto* const row = static_cast<const char*>(input);
  prefetch(row + input_code_bytes(weights, first), input_code_bytes(weights, count));
  const int64_t group = first / weights.group_size, bytes = count / weights.group_size * 4;
  const char* const scales = row + input_code_bytes(weights) + group * 4;
  prefetch(scales, bytes);
  prefetch(scales + num_groups(weights) * 4, bytes);
  prefetch(scales + input_sums(weights, group), bytes);
}

// The scales and offsets of some columns in one group, times the columns' factors. A zero point is
// subtracted from the code, which is exact: only the product rounds, fused or not.
struct Affine {
  Vec scale;
  Vec offset;
  Vec zero_point;
  PL_INLINE Vec value(const Affine& affine, Uints code) {
    const Vec number = __builtin_convertvector((Ints)code, Vec) - affine.zero_point;
    return fma(affine.scale, number, affine.offset);
  }
};

Affine load_affine(const GroupPanels& weights, const RecordLayout& layout, const GroupCursor& place,
                   const char* head, int64_t lane) {
  const Vec factor = load(reinterpret_cast<const float*>(head) + lane);
  const Vec scale = load_scales(layout, place.scales, place.multiples, lane) * factor;
  if (!weights.has_offsets) return {scale, Vec{}, splat(static_cast<float>(weights.zero_point))};
  const Vec offset = load_scales<true>(layout, place.scales, place.multiples, lane);
  return {scale, offset * factor, Vec{}};
}

// Four elements (two pairs) of each lane, one to a byte of `codes`.
PL_INLINE void expand_codes(const Affine& affine, Uints codes, uint32_t* to) {
  const Vec first = Affine::value(affine, codes & 0xFFu);
  const Vec second = Affine::value(affine, (codes >> 8) & 0xFFu);
  const Vec third = Affine::value(affine, (codes >> 16) & 0xFFu);
  const Vec fourth = Affine::value(affine, codes >> 24);
  const Uints low = pair_of_bf16(first, second), high = pair_of_bf16(third, fourth);
  __builtin_memcpy(to, &low, sizeof(low));
  __builtin_memcpy(to + kPanelWidth, &high, sizeof(high));
}

// Expands one group of a vector of columns: `codes` points to their words, `pairs` to their first
// two elements.
template <int kBits>
void expand_group(const Affine& affine, const char* codes, int64_t group_size, uint32_t* pairs) {
  for_each_codes<kBits>(codes, group_size, [&](int64_t k, Uints fours) {
    expand_codes(affine, fours, pairs + k / 2 * kPanelWidth);
  });
}

// [count / 2][32][2] bfloat16, as pack_matrix lays a plain matrix out.
void expand_panel(const GroupPanels& weights, int64_t panel, int64_t first, int64_t count,
                  void* bf16_panel) {
  if (weights.is_float8) return expand_float8(weights, panel, first, count, bf16_panel);
  const char* const head = static_cast<const char*>(weights.panels) + panel * weights.panel_bytes;
  const RecordLayout layout(weights);
  GroupCursor place(layout, head + kPanelHeadBytes + layout.bytes_of(first / weights.group_size));
  auto* to = static_cast<uint32_t*>(bf16_panel);
  with_code_bits(weights.bits, [&]<int kBits>() {
    for (int64_t g = 0; g < count / weights.group_size; ++g) {
      for (int64_t v = 0; v < kPanelVectors; ++v) {
        const int64_t lane = v * kLanes;
        const Affine affine = load_affine(weights, layout, place, head, lane);
        expand_group<kBits>(affine, place.codes + lane * 4, weights.group_size, to + lane);
      }
      to += weights.group_size / 2 * kPanelWidth;
      place.advance(layout);
    }
  });
}

void embedding_groups(const GroupPanels& weights, int64_t row, float scale, float* out) {
  if (weights.is_float8) return embed_float8(weights, row, scale, out);
  const RecordLayout layout(weights);
  const int64_t column = row % kPanelWidth;
  const int64_t lane = column % kLanes, vector = column - lane;
  const char* const head =
      static_cast<const char*>(weights.panels) + row / kPanelWidth * weights.panel_bytes;
  GroupCursor place(layout, head + kPanelHeadBytes);
  for (int64_t g = 0; g < num_groups(weights); ++g) {
    const Affine affine = load_affine(weights, layout, place, head, vector);
    const Affine one = {splat(affine.scale[lane]), splat(affine.offset[lane]),
                        splat(affine.zero_point[lane])};
    const auto* const codes = reinterpret_cast<const uint8_t*>(place.codes);
    for (int64_t k = 0; k < weights.group_size; ++k) {
      const int code = read_code(codes, weights.bits, weights.group_size, k, column);
      const Vec value = Affine::value(one, splat_bits(static_cast<uint32_t>(code)));
      out[g * weights.group_size + k] = value[0] * scale;
    }
    place.advance(layout);
  }
}

}  // namespace

void add_group_row_kernels(KernelTable& table) {
  table.quantized_row_bytes = [](const GroupPanels& weights) {
    return quantized_row_bytes(weights);
  };
  table.quantize_row = quantize_row;
  table.prefetch_row = prefetch_row;
  table.expand_panel = expand_panel;
  table.embedding_groups = embedding_groups;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
