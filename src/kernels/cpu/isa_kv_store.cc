// Rounds keys and values into the slots of a block.
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/vec.h"

namespace paceline::PACELINE_ISA_NAMESPACE {
namespace {

// Keys lie transposed: a vector of one row is rounded at once, then spread over the block's lines.
template <class T>
void store_keys(const float* k, int64_t row_stride, int64_t count, int64_t head_dim,
                int64_t block_size, void* slot) {
  auto* const block = static_cast<T*>(slot);
  for_each_vector(head_dim, [&](int64_t d, int64_t num_lanes) {
    for (int64_t row = 0; row < count; ++row) {
      T rounded[kLanes];
      store(rounded, load_upto(k + row * row_stride + d, num_lanes));
      for (int64_t i = 0; i < num_lanes; ++i) block[(d + i) * block_size + row] = rounded[i];
    }
  });
}

template <class T>
void store_values(const float* v, int64_t row_stride, int64_t count, int64_t head_dim, void* slot) {
  for (int64_t row = 0; row < count; ++row) {
    const float* const from = v + row * row_stride;
    T* const to = static_cast<T*>(slot) + row * head_dim;
    for_each_vector(head_dim, [&](int64_t d, int64_t num_lanes) {
      store_upto(to + d, load_upto(from + d, num_lanes), num_lanes);
    });
  }
}

}  // namespace

void add_kv_store_kernels(KernelTable& table) {
  table.store_keys[0] = store_keys<float>;
  table.store_keys[1] = store_keys<F16>;
  table.store_keys[2] = store_keys<Bf16>;
  table.store_values[0] = store_values<float>;
  table.store_values[1] = store_values<F16>;
  table.store_values[2] = store_values<Bf16>;
}

}  // namespace paceline::PACELINE_ISA_NAMESPACE
