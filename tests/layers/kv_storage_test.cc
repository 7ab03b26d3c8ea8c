// The memory of keys and values: its size, and copies of blocks.
#include "layers/kv_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/backend.h"
#include "tensor/memory.h"

namespace paceline {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i8};

TEST(KvStorage, TakesWhatItsBlocksTake) {
  const KvLayer layer{.num_kv_heads = 3, .head_dim = 64, .num_blocks = 5};
  const size_t vectors = size_t{2} * 3 * 16;
  EXPECT_EQ(kv_block_bytes(layer, 16, DType::f32), vectors * 64 * 4);
  EXPECT_EQ(kv_block_bytes(layer, 16, DType::bf16), vectors * 64 * 2);
  EXPECT_EQ(kv_block_bytes(layer, 16, DType::i8), vectors * (64 + 4));
  // Values that are a part of their keys are stored once, with scales of their own.
  const KvLayer shared{.num_kv_heads = 1, .head_dim = 64, .num_blocks = 5, .values_in_keys = 48};
  EXPECT_EQ(kv_block_bytes(shared, 16, DType::bf16), size_t{16} * 64 * 2);
  EXPECT_EQ(kv_block_bytes(shared, 16, DType::i8), size_t{16} * (64 + 8));
  Memory memory;
  for (const DType dtype : kTypes) {
    for (const int64_t block_size : {1, 5, 16}) {
      const KvLayer odd{.num_kv_heads = 1, .head_dim = 37, .num_blocks = 3};
      const KvLayer layers[] = {layer, odd};
      const KvStorage storage(layers, block_size, dtype, memory);
      EXPECT_EQ(storage.size_bytes(), 5 * kv_block_bytes(layer, block_size, dtype) +
                                          3 * kv_block_bytes(odd, block_size, dtype));
    }
  }
}

TEST(KvStorage, ALayerThatReadsAnothersHasNoBytes) {
  Memory memory;
  const KvLayer own{.num_kv_heads = 2, .head_dim = 8, .num_blocks = 3};
  const KvLayer reader{.num_blocks = 3, .shares_with = 0};
  EXPECT_EQ(kv_block_bytes(reader, 16, DType::bf16), 0u);
  const KvLayer layers[] = {own, reader};
  const KvStorage storage(layers, 16, DType::bf16, memory);
  EXPECT_EQ(storage.size_bytes(), 3 * kv_block_bytes(own, 16, DType::bf16));
  EXPECT_EQ(storage.layer(1).keys.raw(), storage.layer(0).keys.raw());
  EXPECT_EQ(storage.layer(1).values.raw(), storage.layer(0).values.raw());
  EXPECT_TRUE(storage.has_own_keys(0));
  EXPECT_FALSE(storage.has_own_keys(1));
}

// Every tensor of a store.
std::vector<Tensor> tensors_of(const KvStore& store) {
  std::vector<Tensor> tensors = {store.keys, store.values};
  if (store.has_scales()) tensors.insert(tensors.end(), {store.key_scales, store.value_scales});
  return tensors;
}

std::vector<uint8_t> bytes_of(const Tensor& tensor, int64_t block) {
  const Tensor row = tensor.slice(0, block, block + 1);
  const size_t bytes = row.size_bytes();
  const auto* const first =
      static_cast<const uint8_t*>(tensor.raw()) + static_cast<size_t>(block) * bytes;
  return {first, first + bytes};
}

void expect_copies_of_blocks(Backend& backend) {
  Memory memory;
  const KvLayer layer{.num_kv_heads = 2, .head_dim = 7, .num_blocks = 4};
  for (const DType dtype : kTypes) {
    KvStorage storage(std::span(&layer, 1), 3, dtype, memory);
    const std::vector<Tensor> tensors = tensors_of(storage.layer(0));
    EXPECT_EQ(tensors.size(), dtype == DType::i8 ? 4u : 2u);
    uint8_t next = 0;
    for (const Tensor& tensor : tensors) {  // no two neighbours alike, and none written twice
      auto* const bytes = static_cast<uint8_t*>(tensor.raw());
      EXPECT_EQ(std::count(bytes, bytes + tensor.size_bytes(), 0),
                static_cast<std::ptrdiff_t>(tensor.size_bytes()));
      for (size_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<uint8_t>(++next | 1);
    }
    std::vector<std::vector<uint8_t>> before;
    for (const Tensor& tensor : tensors) {
      for (int64_t block = 0; block < 4; ++block) before.push_back(bytes_of(tensor, block));
    }
    // The second copy reads what the first wrote.
    const BlockMove moves[] = {{.from = 2, .to = 0}, {.from = 0, .to = 3}};
    backend.copy_blocks(storage.layer(0), moves);
    for (size_t t = 0; t < tensors.size(); ++t) {
      for (int64_t block = 0; block < 4; ++block) {
        const int64_t source = block == 0 || block == 3 ? 2 : block;
        EXPECT_EQ(bytes_of(tensors[t], block), before[4 * t + static_cast<size_t>(source)])
            << dtype_name(dtype);
      }
    }
  }
}

TEST(KvStorage, ABlockIsCopiedWithAllThatItHoldsAndNothingElseIs) {
  expect_copies_of_blocks(*make_reference_backend());
  ThreadPool threads(1);
  Memory scratch;
  expect_copies_of_blocks(*make_cpu_backend(Isa::baseline, threads, scratch));
}

}  // namespace
}  // namespace paceline
