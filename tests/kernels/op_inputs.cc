#include "tests/kernels/op_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tensor/float8.h"

namespace paceline {

uint64_t Draws::next() {
  uint64_t bits = state_ += 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

float Draws::uniform(float low, float high) {
  return low + static_cast<float>(next() >> 40) * 0x1.0p-24f * (high - low);
}

int64_t Draws::below(int64_t count) {
  return static_cast<int64_t>(next() % static_cast<uint64_t>(count));
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

namespace {

Backend* packing_backend = nullptr;

}  // namespace

PackedBy::PackedBy(Backend& backend) : previous_(std::exchange(packing_backend, &backend)) {}

PackedBy::~PackedBy() { packing_backend = previous_; }

PackedMatrix random_matrix(Memory& memory, ThreadPool& threads, DType dtype, int64_t n, int64_t k,
                           uint64_t seed) {
  const OwnedTensor weights = random_tensor(memory, dtype, {n, k}, seed);
  if (packing_backend != nullptr) {
    return packing_backend->pack_matrix(std::span(&weights.view, 1), dtype);
  }
  return pack_matrix(std::span(&weights.view, 1), dtype, memory, threads);
}

namespace {

// Weights of about one in magnitude.
class RandomRows : public GroupedRows {
 public:
  RandomRows(Grouping grouping, int64_t n, int64_t k, uint64_t seed,
             std::vector<int32_t> order = {})
      : grouping_(grouping), n_(n), k_(k), seed_(seed), order_(std::move(order)) {}

  int64_t num_rows() const override { return n_; }
  int64_t row_length() const override { return k_; }
  Grouping grouping() const override { return grouping_; }
  std::span<const int32_t> column_order() const override { return order_; }
  DType value_dtype() const override { return DType::f32; }

  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override {
    if (grouping_.has_multiples()) return multiply_out(row, codes, scales, offsets);
    if (grouping_.is_float8()) return read_float8(row, codes, scales, offsets);
    Draws draws(seed_ + static_cast<uint64_t>(row) * 7919);
    const int num_codes = 1 << grouping_.bits;
    for (uint8_t& code : codes) code = static_cast<uint8_t>(draws.below(num_codes));
    for (size_t g = 0; g < scales.size(); ++g) {
      scales[g] = draws.uniform(-2.0f, 2.0f) / static_cast<float>(num_codes);
      offsets[g] = grouping_.zero_point ? -static_cast<float>(*grouping_.zero_point) * scales[g]
                                        : draws.uniform(-1.0f, 1.0f);
    }
  }

  void read_multiples(int64_t row, std::span<uint8_t> codes,
                      const ScaleMultiples& multiples) const override {
    Draws draws(seed_ + static_cast<uint64_t>(row) * 7919);
    const int num_codes = 1 << grouping_.bits;
    for (uint8_t& code : codes) code = static_cast<uint8_t>(draws.below(num_codes));
    const auto draw_factors = [&](std::span<float> factors, float most) {
      for (float& factor : factors) {
        factor = to_float(to_float16(draws.uniform(-most, most) / kMostMultiple));
      }
    };
    const auto draw_multiples = [&](std::span<int8_t> of_groups) {
      for (int8_t& multiple : of_groups) {
        multiple = static_cast<int8_t>(draws.below(2 * kMostMultiple) - kMostMultiple);
      }
    };
    draw_factors(multiples.factors, 4.0f / static_cast<float>(num_codes));
    draw_factors(multiples.offset_factors, 2.0f);
    draw_multiples(multiples.scales);
    draw_multiples(multiples.offsets);
  }

  void read_values(int64_t row, std::span<float> values) const override {
    const auto size = static_cast<size_t>(grouping_.group_size);
    std::vector<uint8_t> codes(static_cast<size_t>(k_));
    std::vector<float> scales(codes.size() / size), offsets(scales.size());
    read_codes(row, codes, scales, offsets);
    const auto& numbers = float8_values(DType::f8_e4m3);
    for (size_t i = 0; i < codes.size(); ++i) {
      const float scale = scales[i / size];
      values[order_.empty() ? i : static_cast<size_t>(order_[i])] =
          grouping_.is_float8() ? to_float(to_bfloat16(numbers[codes[i]] * scale))
                                : scale * static_cast<float>(codes[i]) + offsets[i / size];
    }
  }

  std::vector<std::span<const std::byte>> stored_bytes() const override { return {}; }

 private:
  static constexpr int kMostMultiple = 128;

  // Any code but NaN; half of them are among the largest. Groups of 128 have scales for 128 rows.
  void read_float8(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                   std::span<float> offsets) const {
    constexpr int64_t kNumMagnitudes = 127;
    Draws draws(seed_ + static_cast<uint64_t>(row) * 7919);
    for (uint8_t& code : codes) {
      const int64_t least = draws.below(2) * (kNumMagnitudes - 24);
      const int64_t sign = draws.below(2) * 128;
      code = static_cast<uint8_t>(sign + least + draws.below(kNumMagnitudes - least));
    }
    constexpr int64_t kBlock = 128;
    if (grouping_.group_size == kBlock) draws = Draws(seed_ + static_cast<uint64_t>(row / kBlock));
    for (float& scale : scales) scale = draws.uniform(-2.0f, 2.0f) / 448.0f;
    std::ranges::fill(offsets, 0.0f);
  }

  void multiply_out(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                    std::span<float> offsets) const {
    const auto shared = static_cast<size_t>(grouping_.groups_per_factor);
    std::vector<float> factors(scales.size() / shared), offset_factors;
    std::vector<int8_t> multiples(scales.size()), offset_multiples;
    if (!grouping_.zero_point) {
      offset_factors.resize(factors.size());
      offset_multiples.resize(multiples.size());
    }
    read_multiples(row, codes, {factors, multiples, offset_factors, offset_multiples});
    for (size_t g = 0; g < scales.size(); ++g) {
      scales[g] = factors[g / shared] * static_cast<float>(multiples[g]);
      offsets[g] = grouping_.zero_point
                       ? -static_cast<float>(*grouping_.zero_point) * scales[g]
                       : offset_factors[g / shared] * static_cast<float>(offset_multiples[g]);
    }
  }

  Grouping grouping_;
  int64_t n_;
  int64_t k_;
  uint64_t seed_;
  std::vector<int32_t> order_;
};

std::vector<WeightType> make_weight_types() {
  std::vector<WeightType> types;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    types.push_back({std::string(dtype_name(dtype)), dtype, {}});
  }
  const auto add = [&](int bits, int64_t size, bool has_offsets, ActivationType activations,
                       int64_t groups_per_factor = 1) {
    Grouping grouping{.bits = bits,
                      .group_size = size,
                      .zero_point = 1 << (bits - 1),
                      .groups_per_factor = groups_per_factor};
    if (has_offsets) grouping.zero_point.reset();
    types.push_back({fmt::format("q{}x{}{}{}{}", bits, size, has_offsets ? " offsets" : "",
                                 groups_per_factor == 1            ? ""
                                 : size * groups_per_factor == 256 ? " multiples"
                                                                   : " multiples of fewer",
                                 activations == ActivationType::bf16 ? " as bfloat16" : ""),
                     DType::bf16, PackedGroups{grouping, activations}});
  };
  for (const int bits : {4, 8}) {
    for (const int64_t size : {16, 32, 64, 128}) {
      for (const bool has_offsets : {false, true}) {
        add(bits, size, has_offsets, ActivationType::int8);
        if (size == 32 || size == 64) add(bits, size, has_offsets, ActivationType::bf16);
      }
    }
  }
  // The other widths are widened to 8 bits before they are multiplied.
  for (const int bits : {2, 3, 5, 6}) {
    const int64_t shortest = can_pack_codes(bits, 16) ? 16 : 32;
    add(bits, shortest, false, ActivationType::int8);
    add(bits, 64, true, ActivationType::int8);
    add(bits, shortest, true, ActivationType::bf16);
  }
  for (const int64_t size : {16, 128}) {
    types.push_back({fmt::format("{}x{}", dtype_name(DType::f8_e4m3), size), DType::bf16,
                     PackedGroups{float8_grouping(size), ActivationType::bf16}});
  }
  // GGUF's blocks of 256: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K and IQ4_XS.
  for (const ActivationType activations : {ActivationType::int8, ActivationType::bf16}) {
    add(2, 16, true, activations, 16);
    add(4, 16, false, activations, 16);
    add(4, 32, true, activations, 8);
    add(5, 32, true, activations, 8);
    add(6, 16, false, activations, 16);
    add(8, 32, false, activations, 8);
  }
  // IQ3_XXS and IQ3_S.
  add(6, 32, false, ActivationType::int8, 8);
  add(5, 32, false, ActivationType::bf16, 8);
  // The same where columns are reordered by heads of 128 (ReorderedColumns).
  add(4, 32, true, ActivationType::int8, 4);
  add(6, 16, false, ActivationType::int8, 8);
  return types;
}

}  // namespace

int64_t WeightType::row_length(int64_t k) const {
  const int64_t unit = groups ? groups->grouping.factor_length() : 1;
  return (k + unit - 1) / unit * unit;
}

double WeightType::bytes() const {
  if (!groups) return static_cast<double>(dtype_bytes(dtype));
  return static_cast<double>(groups->record_bytes()) /
         static_cast<double>(groups->grouping.factor_length() * kPanelWidth);
}

std::unique_ptr<GroupedRows> random_rows(Grouping grouping, int64_t n, int64_t k, uint64_t seed) {
  return std::make_unique<RandomRows>(grouping, n, k, seed);
}

std::vector<int32_t> random_order(int64_t k) {
  std::vector<int32_t> order(static_cast<size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  Draws draws(static_cast<uint64_t>(k));
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(draws.below(static_cast<int64_t>(i)))]);
  }
  return order;
}

std::vector<WeightType> ordered_weight_types() {
  std::vector<WeightType> ordered;
  for (const WeightType& type : weight_types()) {
    if (!type.groups || type.groups->grouping.is_float8()) continue;
    if (type.groups->grouping.has_multiples()) continue;
    ordered.push_back(type);
    ordered.back().name += " in an order";
    ordered.back().groups->has_input_order = true;
  }
  return ordered;
}

const std::vector<WeightType>& weight_types() {
  static const std::vector<WeightType> types = make_weight_types();
  return types;
}

PackedMatrix random_matrix(Memory& memory, ThreadPool& threads, const WeightType& type, int64_t n,
                           int64_t k, uint64_t seed) {
  if (!type.groups) return random_matrix(memory, threads, type.dtype, n, k, seed);
  const RandomRows rows(type.groups->grouping, n, k, seed,
                        type.groups->has_input_order ? random_order(k) : std::vector<int32_t>());
  const GroupedRows* const part = &rows;
  if (packing_backend != nullptr) {
    return packing_backend->pack_groups(std::span(&part, 1), type.groups->activations);
  }
  return pack_groups(std::span(&part, 1), type.groups->activations, memory, threads);
}

std::vector<float> to_vector(const Tensor& tensor) {
  std::vector<float> elements;
  elements.reserve(static_cast<size_t>(tensor.num_elements()));
  const float* const first = tensor.elements<float>();
  tensor.for_each_offset([&](int64_t offset) { elements.push_back(first[offset]); });
  return elements;
}

OwnedStore::OwnedStore(Memory& memory, DType dtype, int64_t num_blocks, int64_t kv_heads,
                       int64_t head_dim, int64_t block_size, int64_t shared)
    : values_in_keys(shared) {
  keys = allocate_tensor(memory, dtype, {num_blocks, kv_heads, head_dim, block_size});
  if (shared == 0) {
    values = allocate_tensor(memory, dtype, {num_blocks, kv_heads, block_size, head_dim});
  }
  if (dtype != DType::i8) return;
  key_scales = allocate_tensor(memory, DType::f32, {num_blocks, kv_heads, block_size});
  value_scales = allocate_tensor(memory, DType::f32, {num_blocks, kv_heads, block_size});
}

void OwnedStore::fill_with_nan() const {
  for (const OwnedTensor* tensor : {&keys, &values, &key_scales, &value_scales}) {
    if (tensor->view.raw() == nullptr) continue;
    std::fill_n(static_cast<uint8_t*>(tensor->view.raw()), tensor->view.size_bytes(),
                uint8_t{0xFF});
  }
}

namespace {

// Codes times the scales of their slots; `scales` is broadcast over the elements of a slot.
void append_elements(const Tensor& codes, const Tensor& scales, std::vector<float>& elements) {
  const auto* const code = codes.elements<int8_t>();
  const auto* const scale = scales.elements<float>();
  std::vector<float> slot_scales;
  scales.for_each_offset([&](int64_t offset) { slot_scales.push_back(scale[offset]); });
  for (int64_t i = 0; i < codes.num_elements(); ++i) {
    elements.push_back(static_cast<float>(code[i]) * slot_scales[static_cast<size_t>(i)]);
  }
}

}  // namespace

std::vector<float> OwnedStore::elements() const {
  std::vector<float> all;
  if (keys.view.dtype() == DType::i8) {
    const Extents& k = keys.view.shape();  // [num_blocks, kv_heads, head_dim, block_size]
    append_elements(keys.view, key_scales.view.reshape({k[0], k[1], 1, k[3]}).broadcast_to(k), all);
    append_elements(
        values.view,
        value_scales.view.reshape({k[0], k[1], k[3], 1}).broadcast_to(values.view.shape()), all);
    return all;
  }
  const int64_t count = keys.view.num_elements();
  all.resize(static_cast<size_t>(2 * count));
  copy_elements(keys.view.reshape({count}), Tensor(all.data(), DType::f32, {count}));
  copy_elements(values.view.reshape({count}), Tensor(all.data() + count, DType::f32, {count}));
  return all;
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
  if (params.bidirectional) name += " both ways";
  if (values_in_keys > 0) name += fmt::format(" values {}", values_in_keys);
  for (const SliceShape& slice : slices) {
    name += fmt::format(" {}+{}", slice.first_position, slice.num_rows);
  }
  return name;
}

namespace {

// Distinct blocks for every entry that may be read, in random order.
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
  stored = OwnedStore(memory, shape.dtype, num_blocks, shape.kv_heads, shape.head_dim,
                      shape.block_size, shape.values_in_keys);
  stored.fill_with_nan();

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
