#include "tests/kernels/op_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/random.h"

namespace paceline {

float Draws::uniform(float low, float high) {
  const auto draw = static_cast<float>(uniform_draw(seed_, counter_++));
  return low + draw * (high - low);
}

int64_t Draws::below(int64_t count) {
  return std::min(count - 1, static_cast<int64_t>(uniform_draw(seed_, counter_++) *
                                                  static_cast<double>(count)));
}

OwnedTensor random_tensor(Memory& memory, DType dtype, Extents shape, uint64_t seed, float size) {
  OwnedTensor exact = allocate_tensor(memory, DType::f32, shape);
  Draws draws(seed);
  float* const elements = exact.view.elements<float>();
  for (int64_t i = 0; i < exact.view.num_elements(); ++i) elements[i] = draws.uniform(-size, size);
  if (dtype == DType::f32) return exact;
  OwnedTensor rounded = allocate_tensor(memory, dtype, shape);
  copy_elements(exact.view, rounded.view);
  return rounded;
}

PackedMatrix random_matrix(Memory& memory, ThreadPool& threads, DType dtype, int64_t n, int64_t k,
                           uint64_t seed) {
  const OwnedTensor weights = random_tensor(memory, dtype, {n, k}, seed);
  return pack_matrix(std::span(&weights.view, 1), dtype, memory, threads);
}

std::vector<float> to_vector(const Tensor& tensor) {
  std::vector<float> elements;
  elements.reserve(static_cast<size_t>(tensor.num_elements()));
  const float* const first = tensor.elements<float>();
  tensor.for_each_offset([&](int64_t offset) { elements.push_back(first[offset]); });
  return elements;
}

int64_t AttentionShape::num_rows() const {
  int64_t rows = 0;
  for (const SliceShape& slice : slices) rows += slice.num_rows;
  return rows;
}

std::string AttentionShape::name() const {
  std::string name = fmt::format("attention {} heads {}/{} dim {} block {}", dtype_name(dtype),
                                 heads, kv_heads, head_dim, block_size);
  if (params.window > 0) name += fmt::format(" window {}", params.window);
  if (params.soft_cap > 0) name += fmt::format(" cap {}", params.soft_cap);
  for (const SliceShape& slice : slices) {
    name += fmt::format(" {}+{}", slice.first_position, slice.num_rows);
  }
  return name;
}

namespace {

void fill_with_nan(const Tensor& tensor) {
  std::fill_n(static_cast<uint8_t*>(tensor.raw()), tensor.size_bytes(), uint8_t{0xFF});
}

// Distinct blocks for every entry that may be looked at, in random order.
std::vector<std::vector<int32_t>> place_blocks(const AttentionShape& shape, Draws& draws,
                                               int64_t& num_blocks) {
  std::vector<std::vector<int32_t>> tables;
  num_blocks = 3;
  for (const SliceShape& slice : shape.slices) {
    const int64_t end = slice.first_position + slice.num_rows;
    const int64_t count = (end + shape.block_size - 1) / shape.block_size;
    tables.emplace_back(static_cast<size_t>(count), std::numeric_limits<int32_t>::max());
    num_blocks += count;
  }
  std::vector<int32_t> free(static_cast<size_t>(num_blocks));
  std::iota(free.begin(), free.end(), 0);
  for (size_t i = 0; i < tables.size(); ++i) {
    const int64_t window = shape.params.window, position = shape.slices[i].first_position;
    const int64_t first = window > 0 ? std::max<int64_t>(0, position - window + 1) : 0;
    for (size_t b = static_cast<size_t>(first / shape.block_size); b < tables[i].size(); ++b) {
      const auto choice = free.begin() + draws.below(static_cast<int64_t>(free.size()));
      tables[i][b] = *choice;
      free.erase(choice);
    }
  }
  return tables;
}

}  // namespace

AttentionInputs::AttentionInputs(const AttentionShape& wanted, uint64_t seed,
                                 uint64_t placement_seed, Memory& memory)
    : shape(wanted) {
  q = random_tensor(memory, DType::f32, {shape.num_rows(), shape.heads, shape.head_dim}, seed,
                    2.0f);
  Draws placement(placement_seed);
  int64_t num_blocks = 0;
  block_tables = place_blocks(shape, placement, num_blocks);
  keys = allocate_tensor(memory, shape.dtype,
                         {num_blocks, shape.kv_heads, shape.head_dim, shape.block_size});
  values = allocate_tensor(memory, shape.dtype,
                           {num_blocks, shape.kv_heads, shape.block_size, shape.head_dim});
  fill_with_nan(keys.view);
  fill_with_nan(values.view);

  const auto reference = make_reference_backend();
  int64_t first_row = 0;
  for (size_t i = 0; i < shape.slices.size(); ++i) {
    const auto& [first_position, num_rows] = shape.slices[i];
    const int64_t end = first_position + num_rows;
    const Extents extents = {end, shape.kv_heads, shape.head_dim};
    const OwnedTensor k = random_tensor(memory, DType::f32, extents, seed + 100 + 2 * i, 2.0f);
    const OwnedTensor v = random_tensor(memory, DType::f32, extents, seed + 101 + 2 * i, 2.0f);
    const int64_t window = shape.params.window;
    const int64_t first = window > 0 ? std::max<int64_t>(0, first_position - window + 1) : 0;
    std::vector<int64_t> slots;
    for (int64_t p = first; p < end; ++p) {
      const int64_t block = block_tables[i][static_cast<size_t>(p / shape.block_size)];
      slots.push_back(block * shape.block_size + p % shape.block_size);
    }
    reference->store_kv(k.view.slice(0, first, end), v.view.slice(0, first, end), slots, store());
    slices.push_back({first_row, num_rows, first_position, block_tables[i]});
    first_row += num_rows;
  }
}

}  // namespace paceline
