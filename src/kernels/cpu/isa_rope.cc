// Rotary position embedding: the table of angles of a step, and the rotation.
#include "base/portable_math.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// The angle is a float32 product, as in HF's rotary embeddings: that is what models were trained
// on.
void rope_table(float position, const float* inv_freq, int64_t half, float scale, float* table) {
  for (int64_t i = 0; i < half; ++i) {
    const float angle = position * inv_freq[i];
    const SinCos turn = portable_sin_cos(static_cast<double>(angle));
    table[2 * i] = static_cast<float>(turn.cos * static_cast<double>(scale));
    table[2 * i + 1] = static_cast<float>(turn.sin * static_cast<double>(scale));
  }
}

// Loads `count` interleaved pairs.
PL_INLINE void load_pairs(const float* pairs, int64_t count, Vec& cosine, Vec& sine) {
  Vec low, high = {};
  if (count == kLanes) {
    low = load(pairs);
    high = load(pairs + kLanes);
  } else {
    low = load_upto(pairs, min_of(2 * count, kLanes));
    if (2 * count > kLanes) high = load_part(pairs + kLanes, 2 * count - kLanes);
  }
  cosine = even_lanes(low, high);
  sine = odd_lanes(low, high);
}

void rope(const float* table, int64_t half, float* head) {
  for_each_vector(half, [&](int64_t i, int64_t count) {
    Vec cosine, sine;
    load_pairs(table + 2 * i, count, cosine, sine);
    const Vec first = load_upto(head + i, count);
    const Vec second = load_upto(head + half + i, count);
    store_upto(head + i, fma(-second, sine, first * cosine), count);
    store_upto(head + half + i, fma(first, sine, second * cosine), count);
  });
}

void store_pairs(float* pairs, int64_t count, Vec first, Vec second) {
  const Vec low = interleave_low(first, second), high = interleave_high(first, second);
  if (count == kLanes) {
    store(pairs, low);
    store(pairs + kLanes, high);
    return;
  }
  store_upto(pairs, low, min_of(2 * count, kLanes));
  if (2 * count > kLanes) store_part(pairs + kLanes, high, 2 * count - kLanes);
}

void rope_neighbours(const float* table, int64_t half, float* head) {
  for_each_vector(half, [&](int64_t i, int64_t count) {
    Vec cosine, sine, first, second;
    load_pairs(table + 2 * i, count, cosine, sine);
    load_pairs(head + 2 * i, count, first, second);
    store_pairs(head + 2 * i, count, fma(-second, sine, first * cosine),
                fma(first, sine, second * cosine));
  });
}

}  // namespace

void add_rope_kernels(KernelTable& table) {
  table.rope_table = rope_table;
  table.rope[0] = rope;
  table.rope[1] = rope_neighbours;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
