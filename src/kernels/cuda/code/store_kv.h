// Rounds keys and values into their slots: a warp for each row and kv head.
#pragma once

#include "kernels/cuda/code/elementwise.h"
#include "kernels/cuda/code/kv_blocks.h"

namespace paceline::cuda {

constexpr float kLargestCode = 127.0f;

// The largest magnitude / 127, or NaN where an element isn't finite; all lanes get it. The bits of
// magnitudes are in the order of their values, with NaN last.
PL_DEVICE float code_scale(const float* elements, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = lane_index(); i < count; i += kWarpLanes) {
    const uint32_t magnitude = bits_of_float(elements[i]) & 0x7FFFFFFFu;
    largest = magnitude > largest ? magnitude : largest;
  }
  for (uint32_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    const uint32_t other = shuffle_xor(largest, distance);
    largest = other > largest ? other : largest;
  }
  return largest >= 0x7F800000u ? float_of_bits(0x7FC00000u)
                                : float_of_bits(largest) / kLargestCode;
}

// Ties to even: adding 1.5 * 2^23 leaves no bits for a fraction. Clamped, as a scale so small that
// it was rounded down itself would need larger codes.
PL_DEVICE int8_t code_of(float element, float scale) {
  if (!(scale > 0.0f)) return 0;
  const float code = element / scale;
  const float below = code > kLargestCode ? kLargestCode : code;
  const float clamped = below < -kLargestCode ? -kLargestCode : below;
  constexpr float kMagic = 0x1.8p23f;
  return static_cast<int8_t>((clamped + kMagic) - kMagic);
}

// Writes one head's elements `stride` apart.
template <class Stored>
PL_DEVICE void store_head(const float* elements, int64_t count, Stored* to, int64_t stride,
                          float* scale_place) {
  if constexpr (kHasScales<Stored>) {
    const float scale = code_scale(elements, count);
    if (lane_index() == 0) *scale_place = scale;
    for (int64_t d = lane_index(); d < count; d += kWarpLanes) {
      to[d * stride] = code_of(elements[d], scale);
    }
  } else {
    for (int64_t d = lane_index(); d < count; d += kWarpLanes) {
      assign_float(elements[d], to[d * stride]);
    }
  }
}

template <class Stored>
struct StoreKv {
  static constexpr std::string_view kName = TypeNames{.f32 = "store_kv_f32",
                                                      .f16 = "store_kv_f16",
                                                      .bf16 = "store_kv_bf16",
                                                      .i8 = "store_kv_i8"}
                                                .of<Stored>();
  static constexpr uint32_t kThreads = kWarpLanes;
  struct Params {
    Heads k;
    Heads v;
    const int64_t* slots = nullptr;  // of the rows; -1: not stored
    KvBlocks kv;
  };
  using Shared = NoShared;

  PL_DEVICE static void run(const Params& p, Shared& /*shared*/) {
    const int64_t slot = p.slots[block_index().x], head = block_index().y;
    if (slot < 0) return;
    const int64_t row = block_index().x;
    const KvSlot<Stored> to = kv_slot<Stored>(p.kv, slot, head);
    store_head<Stored>(p.k.head(row, head), p.kv.head_dim, to.key, p.kv.block_size, to.key_scale);
    store_head<Stored>(p.v.head(row, head), p.kv.head_dim, to.value, 1, to.value_scale);
  }
};

}  // namespace paceline::cuda
