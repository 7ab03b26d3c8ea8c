// Rounds keys and values into the slots of a block.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

constexpr float kLargestCode = 127.0f;

// The largest magnitude / 127, or NaN where an element isn't finite. The bits of magnitudes are in
// the order of their values, with NaN last.
float scale_of(const float* row, int64_t head_dim) {
  Ints largest = {};
  for_each_vector(head_dim, [&](int64_t d, int64_t num_lanes) {
    const Ints magnitude = (Ints)load_upto(row + d, num_lanes) & 0x7FFFFFFF;
    largest = magnitude > largest ? magnitude : largest;
  });
  int32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits = largest[lane] > bits ? largest[lane] : bits;
  if (bits >= 0x7F800000) return __builtin_nanf("");
  float magnitude = 0.0f;
  __builtin_memcpy(&magnitude, &bits, sizeof(bits));
  return magnitude / kLargestCode;
}

// Ties to even. Clamps, as a scale so small that it was rounded down itself would need larger
// codes.
PL_INLINE Vec codes_of(Vec values, float scale) {
  if (!(scale > 0.0f)) return Vec{};
  const Vec codes = max(min(values / scale, splat(kLargestCode)), splat(-kLargestCode));
  const Vec magic = splat(0x1.8p23f);
  return (codes + magic) - magic;
}

template <class T>
PL_INLINE Vec rounded_elements(const StoreTask& task, int64_t row, int64_t d, int64_t num_lanes) {
  const Vec values = load_upto(task.rows + row * task.row_stride + d, num_lanes);
  if constexpr (kHasScales<T>) return codes_of(values, task.scales[row]);
  return values;
}

template <class T>
PL_INLINE void store_scales(const StoreTask& task) {
  if constexpr (kHasScales<T>) {
    for (int64_t row = 0; row < task.count; ++row) {
      task.scales[row] = scale_of(task.rows + row * task.row_stride, task.head_dim);
    }
  }
}

// Keys lie transposed: a vector of one row is rounded at once, then spread over the block's lines.
template <class T>
void store_keys(const StoreTask& task) {
  store_scales<T>(task);
  auto* const block = static_cast<T*>(task.slot);
  for_each_vector(task.head_dim, [&](int64_t d, int64_t num_lanes) {
    for (int64_t row = 0; row < task.count; ++row) {
      T rounded[kLanes];
      store(rounded, rounded_elements<T>(task, row, d, num_lanes));
      for (int64_t i = 0; i < num_lanes; ++i) block[(d + i) * task.block_size + row] = rounded[i];
    }
  });
}

template <class T>
void store_values(const StoreTask& task) {
  store_scales<T>(task);
  for (int64_t row = 0; row < task.count; ++row) {
    T* const to = static_cast<T*>(task.slot) + row * task.head_dim;
    for_each_vector(task.head_dim, [&](int64_t d, int64_t num_lanes) {
      store_upto(to + d, rounded_elements<T>(task, row, d, num_lanes), num_lanes);
    });
  }
}

}  // namespace

void add_kv_store_kernels(KernelTable& table) {
  table.store_keys[0] = store_keys<float>;
  table.store_keys[1] = store_keys<F16>;
  table.store_keys[2] = store_keys<Bf16>;
  table.store_keys[3] = store_keys<int8_t>;
  table.store_values[0] = store_values<float>;
  table.store_values[1] = store_values<F16>;
  table.store_values[2] = store_values<Bf16>;
  table.store_values[3] = store_values<int8_t>;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
