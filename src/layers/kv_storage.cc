#include "layers/kv_storage.h"

namespace paceline {

size_t kv_block_bytes(const KvLayer& layer, int64_t block_size, DType dtype) {
  return static_cast<size_t>(2 * layer.num_kv_heads * layer.head_dim * block_size) *
         dtype_bytes(dtype);
}

KvStorage::KvStorage(std::span<const KvLayer> layers, int64_t block_size, DType dtype,
                     Memory& memory) {
  buffers_.reserve(layers.size());
  stores_.reserve(layers.size());
  for (const KvLayer& layer : layers) {
    const size_t half =
        static_cast<size_t>(layer.num_blocks) * kv_block_bytes(layer, block_size, dtype) / 2;
    Buffer& buffer = buffers_.emplace_back(memory, 2 * half);
    auto* bytes = static_cast<char*>(buffer.get());
    stores_.push_back(
        {.keys = Tensor(bytes, dtype,
                        {layer.num_blocks, layer.num_kv_heads, layer.head_dim, block_size}),
         .values = Tensor(bytes + half, dtype,
                          {layer.num_blocks, layer.num_kv_heads, block_size, layer.head_dim})});
  }
}

void KvStorage::copy_block(int64_t layer, int64_t from, int64_t to) {
  const KvStore& store = stores_[static_cast<size_t>(layer)];
  copy_elements(store.keys.slice(0, from, from + 1), store.keys.slice(0, to, to + 1));
  copy_elements(store.values.slice(0, from, from + 1), store.values.slice(0, to, to + 1));
}

size_t KvStorage::size_bytes() const {
  size_t total = 0;
  for (const Buffer& buffer : buffers_) total += buffer.size_bytes();
  return total;
}

}  // namespace paceline
