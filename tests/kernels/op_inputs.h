// Seeded inputs for kernels: random tensors, packed weights, and paged stores full of garbage
// wherever nothing was stored.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "tensor/memory.h"
#include "tensor/tensor.h"

namespace paceline {

// A reproducible stream of numbers: SplitMix64 (Steele, Lea and Flood, 2014). Inputs were a third
// of the time of tests/kernels when each was a draw of base/random.h.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  // Uniform in [low, high).
  float uniform(float low, float high);
  // Uniform in [0, count).
  int64_t below(int64_t count);

 private:
  uint64_t next();

  uint64_t state_;
};

// Elements uniform in [-size, size).
OwnedTensor random_tensor(Memory& memory, DType dtype, Extents shape, uint64_t seed,
                          float size = 1.0f);
PackedMatrix random_matrix(Memory& memory, ThreadPool& threads, DType dtype, int64_t n, int64_t k,
                           uint64_t seed);

// While one lives, random_matrix() has a backend pack matrices: a GPU has panels of its own.
class PackedBy {
 public:
  explicit PackedBy(Backend& backend);
  ~PackedBy();
  PackedBy(const PackedBy&) = delete;
  PackedBy& operator=(const PackedBy&) = delete;

 private:
  Backend* previous_;
};

// How weights may be stored: as plain numbers, or quantised in one of the layouts.
struct WeightType {
  std::string name;
  DType dtype = DType::bf16;
  std::optional<PackedGroups> groups;

  // Rows of quantised weights are whole groups long: `k`, or the next length that is.
  int64_t row_length(int64_t k) const;
  // Bytes of one weight with its share of scales.
  double bytes() const;
};
// The plain ones, codes of 4 and 8 bits with every group size, with and without offsets, some of
// every other width, and those whose scales are multiples.
const std::vector<WeightType>& weight_types();
// Those of integers with scales of their own, with inputs in random_order(): on CPUs alone.
std::vector<WeightType> ordered_weight_types();
// The same order for each k.
std::vector<int32_t> random_order(int64_t k);
// Weights of about one in magnitude; k as row_length says.
std::unique_ptr<GroupedRows> random_rows(Grouping grouping, int64_t n, int64_t k, uint64_t seed);
// The same, packed.
PackedMatrix random_matrix(Memory& memory, ThreadPool& threads, const WeightType& type, int64_t n,
                           int64_t k, uint64_t seed);

// The elements of any view in row-major order.
std::vector<float> to_vector(const Tensor& tensor);

// A KvStore of its own memory, zeroed.
struct OwnedStore {
  OwnedStore() = default;
  OwnedStore(Memory& memory, DType dtype, int64_t num_blocks, int64_t kv_heads, int64_t head_dim,
             int64_t block_size, int64_t shared = 0);

  OwnedTensor keys, values, key_scales, value_scales;
  int64_t values_in_keys = 0;  // as of KvStore

  KvStore view() const {
    return {keys.view, values.view, key_scales.view, value_scales.view, values_in_keys};
  }
  // Every byte 0xFF: NaN, or codes under scales of NaN.
  void fill_with_nan() const;
  // All keys, then all values, as numbers; of a store that has both.
  std::vector<float> elements() const;
};

struct SliceShape {
  int64_t first_position = 0;
  int64_t num_rows = 0;
};

struct AttentionShape {
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 32;
  int64_t block_size = 16;
  DType dtype = DType::f32;
  AttentionParams params;
  std::vector<SliceShape> slices;
  int64_t values_in_keys = 0;  // as of KvStore

  int64_t num_rows() const;
  int64_t value_dim() const { return values_in_keys > 0 ? values_in_keys : head_dim; }
  Extents out_shape() const { return {num_rows(), heads, value_dim()}; }
  std::string name() const;
};

// A store that holds every sequence's keys and values, from the first that a row's window reaches
// up to the last row. All else is NaN, and table entries that must not be read point far outside.
// The stored values depend on the shapes and seed alone, not on block_size.
struct AttentionInputs {
  AttentionInputs(const AttentionShape& wanted, uint64_t seed, uint64_t placement_seed,
                  Memory& memory);

  AttentionShape shape;
  OwnedTensor q;  // [rows, heads, head_dim]
  OwnedStore stored;
  std::vector<std::vector<int32_t>> block_tables;
  std::vector<AttentionSlice> slices;

  KvStore store() const { return stored.view(); }
};

}  // namespace paceline
