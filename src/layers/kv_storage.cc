#include "layers/kv_storage.h"

namespace paceline {
namespace {

size_t scale_bytes(DType dtype) { return dtype == DType::i8 ? sizeof(float) : 0; }

// The store in `bytes`: first the scales, for their alignment, then keys and values.
KvStore store_at(char* bytes, const KvLayer& layer, int64_t block_size, DType dtype) {
  const int64_t vectors = layer.num_blocks * layer.num_kv_heads * block_size;
  const size_t all_scales = static_cast<size_t>(vectors) * scale_bytes(dtype);
  char* const keys = bytes + 2 * all_scales;
  char* const values = keys + static_cast<size_t>(vectors * layer.head_dim) * dtype_bytes(dtype);
  KvStore store{.keys = Tensor(keys, dtype,
                               {layer.num_blocks, layer.num_kv_heads, layer.head_dim, block_size}),
                .values = {},
                .values_in_keys = layer.values_in_keys};
  if (layer.values_in_keys == 0) {
    store.values =
        Tensor(values, dtype, {layer.num_blocks, layer.num_kv_heads, block_size, layer.head_dim});
  }
  if (!store.has_scales()) return store;
  const Extents shape = {layer.num_blocks, layer.num_kv_heads, block_size};
  store.key_scales = Tensor(bytes, DType::f32, shape);
  store.value_scales = Tensor(bytes + all_scales, DType::f32, shape);
  return store;
}

// Hands out the parts of a buffer, one behind the other.
class Parts {
 public:
  explicit Parts(void* begin) : next_(static_cast<char*>(begin)) {}

  Tensor take(int64_t blocks, int64_t elements, DType dtype = DType::f32) {
    const Tensor part(next_, dtype, {blocks, elements});
    next_ += part.size_bytes();
    return part;
  }

 private:
  char* next_;
};

StateStore states_at(void* bytes, const KvLayer& layer) {
  Parts parts(bytes);
  const auto& [convolution, matrices] = layer.states;
  StateStore store;
  store.convolution.states = parts.take(layer.num_blocks, convolution.state);
  store.convolution.open_rows = parts.take(layer.num_open_blocks, convolution.open_rows);
  store.matrices.open_rows = parts.take(layer.num_open_blocks, matrices.open_rows);
  store.matrices.states = parts.take(layer.num_blocks, matrices.state, layer.state_dtype);
  return store;
}

size_t layer_bytes(const KvLayer& layer, int64_t block_size, DType dtype) {
  return static_cast<size_t>(layer.num_blocks) * kv_block_bytes(layer, block_size, dtype) +
         static_cast<size_t>(layer.num_open_blocks) * open_rows_bytes(layer.states);
}

}  // namespace

size_t state_bytes(const LayerStateElements& states, DType dtype) {
  return static_cast<size_t>(states.convolution.state) * sizeof(float) +
         static_cast<size_t>(states.matrices.state) * dtype_bytes(dtype);
}

size_t open_rows_bytes(const LayerStateElements& states) {
  return static_cast<size_t>(states.open_rows()) * sizeof(float);
}

size_t kv_block_bytes(const KvLayer& layer, int64_t block_size, DType dtype) {
  if (layer.has_states()) return state_bytes(layer.states, layer.state_dtype);
  const int64_t vectors = layer.num_kv_heads * block_size;
  const int64_t vectors_of_elements = layer.values_in_keys > 0 ? vectors : 2 * vectors;
  return static_cast<size_t>(vectors_of_elements * layer.head_dim) * dtype_bytes(dtype) +
         static_cast<size_t>(2 * vectors) * scale_bytes(dtype);
}

KvStorage::KvStorage(std::span<const KvLayer> layers, int64_t block_size, DType dtype,
                     Memory& memory)
    : block_size_(block_size) {
  buffers_.reserve(layers.size());
  stores_.reserve(layers.size());
  for (const KvLayer& layer : layers) {
    Buffer& buffer = buffers_.emplace_back(memory, layer_bytes(layer, block_size, dtype));
    if (layer.num_kv_heads == 0) {
      states_.emplace_back();
      stores_.push_back(layer.shares_with == kOwnCache
                            ? KvStore()
                            : stores_[static_cast<size_t>(layer.shares_with)]);
      continue;
    }
    if (layer.has_states()) {
      states_.push_back(states_at(buffer.get(), layer));
      stores_.emplace_back();
      continue;
    }
    stores_.push_back(store_at(static_cast<char*>(buffer.get()), layer, block_size, dtype));
    states_.emplace_back();
  }
}

size_t KvStorage::size_bytes() const {
  size_t total = 0;
  for (const Buffer& buffer : buffers_) total += buffer.size_bytes();
  return total;
}

}  // namespace paceline
