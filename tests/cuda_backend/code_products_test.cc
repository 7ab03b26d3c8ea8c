// Products with quantised weights: the kernels that read codes give the bits of unpacked weights,
// which products of more than 256 rows multiply.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda/code/code_panels.h"
#include "kernels/cuda/code_packing.h"
#include "kernels/cuda/cuda_backend.h"
#include "tests/cuda/every_order.h"
#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/mixture_inputs.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/same_bits.h"
#include "tests/test_scale.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kUnpackedRows = kMostCodeRows + 1;

std::vector<WeightType> quantised_types() {
  std::vector<WeightType> types;
  for (const WeightType& type : weight_types()) {
    if (type.groups && type.groups->grouping.is_float8()) continue;  // expanded
    if (type.groups && type.groups->activations == ActivationType::bf16) types.push_back(type);
    if (type.name == "q4x128" || type.name == "q4x16 offsets" || type.name == "q8x16 offsets") {
      types.push_back(type);
    }
  }
  return types;
}

void expect_rows_of(const std::string& what, Backend& backend, const PackedMatrix& w,
                    const Tensor& x, const Tensor* bias) {
  const OwnedTensor all = allocate_tensor(backend.memory(), DType::f32, {kUnpackedRows, w.n});
  backend.matmul(x, w, bias, all.view);
  const std::vector<int64_t> counts = {1, 2, 3, 5, 8, 9, 16, 31, 32, 33, 50, 64, 65, 100, 256};
  for (const int64_t rows : cases_to_run(counts, 0, 4, 2)) {
    const OwnedTensor some = allocate_tensor(backend.memory(), DType::f32, {rows, w.n});
    backend.matmul(x.slice(0, 1, rows + 1), w, bias, some.view);
    EXPECT_SAME_BITS(to_vector(some.view), to_vector(all.view.slice(0, 1, rows + 1)))
        << what << ", " << rows << " rows";
  }
}

// Rows of inputs that don't end where units do, columns that don't end where panels do.
TEST(CudaCodeProducts, HaveTheBitsOfUnpackedWeights) {
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  for (const WeightType& type : cases_to_run(quantised_types(), 1, 2, 2)) {
    for (const int64_t least_k : {16, 1104}) {
      const int64_t k = type.row_length(least_k), n = 75;
      const OwnedTensor x = random_tensor(memory, DType::f32, {kUnpackedRows, k}, 1);
      const OwnedTensor bias = random_tensor(memory, DType::f32, {n}, 2);
      const PackedMatrix w = random_matrix(memory, cuda.threads, type, n, k, 3);
      expect_rows_of(type.name + " of " + std::to_string(k), *cuda, w, x.view, &bias.view);
    }
  }
}

// Each number of segments of K has kernels of its own; some have a block for each segment.
TEST(CudaCodeProducts, OfAnyNumberOfSegments) {
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  for (const WeightType& type : weight_types()) {
    if (type.name != "q4x64" && type.name != "q8x32 offsets") continue;
    for (const int64_t k : {1024, 2048, 3072, 4096 + 64, 8 * 1024, 9 * 1024 + 128}) {
      const OwnedTensor x = random_tensor(memory, DType::f32, {kUnpackedRows, k}, 1);
      const PackedMatrix w = random_matrix(memory, cuda.threads, type, 33, k, 2);
      const OwnedTensor all = allocate_tensor(memory, DType::f32, {kUnpackedRows, 33});
      cuda->matmul(x.view, w, nullptr, all.view);
      for (const int64_t rows : {1, 4, 20, 40}) {
        const OwnedTensor some = allocate_tensor(memory, DType::f32, {rows, 33});
        cuda->matmul(x.view.slice(0, 0, rows), w, nullptr, some.view);
        EXPECT_SAME_BITS(to_vector(some.view), to_vector(all.view.slice(0, 0, rows)))
            << type.name << " of " << k << ", " << rows << " rows";
      }
    }
  }
}

// So many columns that no segment has a block of its own, and many rows fill blocks of 64.
TEST(CudaCodeProducts, OfManyColumns) {
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  constexpr int64_t kInputs = 1088, kColumns = 300;
  for (const WeightType& type : weight_types()) {
    if (type.name != "q4x32") continue;
    const OwnedTensor x = random_tensor(memory, DType::f32, {70, kInputs}, 1);
    const OwnedTensor out = allocate_tensor(memory, DType::f32, {70, kColumns});
    const OwnedTensor alone = allocate_tensor(memory, DType::f32, {1, kColumns});
    const PackedMatrix w = random_matrix(memory, cuda.threads, type, kColumns, kInputs, 2);
    cuda->matmul(x.view, w, nullptr, out.view);
    for (const int64_t row : {0, 33, 69}) {
      cuda->matmul(x.view.slice(0, row, row + 1), w, nullptr, alone.view);
      EXPECT_SAME_BITS(to_vector(alone.view), to_vector(out.view.slice(0, row, row + 1))) << row;
    }
  }
}

// Random rows whose numbers are changed.
class ChangedNumbers : public GroupedRows {
 public:
  using Change = float (*)(float scale_or_offset, bool is_offset);

  ChangedNumbers(Grouping grouping, int64_t n, int64_t k, Change change)
      : of_(random_rows(grouping, n, k, 5)), change_(change) {}

  int64_t num_rows() const override { return of_->num_rows(); }
  int64_t row_length() const override { return of_->row_length(); }
  Grouping grouping() const override { return of_->grouping(); }
  DType value_dtype() const override { return DType::f32; }
  void read_codes(int64_t row, std::span<uint8_t> codes, std::span<float> scales,
                  std::span<float> offsets) const override {
    of_->read_codes(row, codes, scales, offsets);
    for (float& scale : scales) scale = change_(scale, false);
    for (float& offset : offsets) offset = change_(offset, true);
  }
  void read_values(int64_t row, std::span<float> values) const override {
    of_->read_values(row, values);
  }
  std::vector<std::span<const std::byte>> stored_bytes() const override { return {}; }

 private:
  std::unique_ptr<GroupedRows> of_;
  Change change_;
};

// Offsets with far lower bits than 128 scales have, and numbers that are exact in bfloat16.
TEST(CudaCodeProducts, OfEveryFormOfCodes) {
  EmulatedBackend cuda({.num_threads = 2});
  constexpr int64_t kInputs = 1152, kColumns = 40;
  const OwnedTensor x = random_tensor(cuda->memory(), DType::f32, {kUnpackedRows, kInputs}, 1);
  const ChangedNumbers::Change small_offsets = [](float number, bool is_offset) {
    return is_offset ? number * 1e-4f : number;
  };
  const ChangedNumbers::Change in_bf16 = [](float number, bool) {
    return to_float(to_bfloat16(number));
  };
  const std::pair<CodeForm, ChangedNumbers::Change> forms[] = {{CodeForm::whole, small_offsets},
                                                               {CodeForm::paired, in_bf16}};
  for (const auto& [form, change] : forms) {
    for (const int64_t size : {32, 64, 128}) {
      const ChangedNumbers rows({.bits = 4, .group_size = size}, kColumns, kInputs, change);
      const GroupedRows* const part = &rows;
      const PackedMatrix w = cuda->pack_groups(std::span(&part, 1), ActivationType::bf16);
      const auto* const tile = static_cast<const std::byte*>(w.storage.get());
      EXPECT_EQ(*reinterpret_cast<const CodeForm*>(tile + kFormPlace), form);
      expect_rows_of("groups of " + std::to_string(size), *cuda, w, x.view, nullptr);
    }
  }
}

// Numbers of float16 and of bfloat16 times a power of two.
TEST(CudaCodeProducts, FormsOfCodesGiveTheElementsOfTheRule) {
  Draws draws(1);
  std::map<CodeForm, int> counts;
  for (int i = 0; i < 20000; ++i) {
    const bool is_bf16 = i % 2 == 0;
    const auto number = [&] {
      const float factor = std::ldexp(1.0f, static_cast<int>(draws.below(24)) - 12);
      const float drawn = draws.uniform(-2.0f, 2.0f);
      return (is_bf16 ? to_float(to_bfloat16(drawn)) : to_float(to_float16(drawn))) * factor;
    };
    const GroupAffine affine{number(), number()};
    const CodeForm form = code_form(affine);
    ++counts[form];
    if (form == CodeForm::whole) continue;
    const float shifted = std::fma(-kCodeShift, affine.scale, affine.offset);
    const auto bf16 = [](float value) { return uint32_t{to_bfloat16(value).bits}; };
    for (int j = 0; j < 16; ++j) {
      const auto code = static_cast<float>(j);
      const float by_rule = std::fma(affine.scale, code, affine.offset);
      ASSERT_EQ(std::fma(affine.scale, kCodeShift + code, shifted), by_rule);
      if (form != CodeForm::paired) continue;
      ASSERT_EQ(multiply_add_bf16_pairs(bf16(affine.scale), bf16(code), bf16(affine.offset)),
                bf16(by_rule));
    }
  }
  for (const CodeForm form : {CodeForm::whole, CodeForm::shifted, CodeForm::paired}) {
    EXPECT_GT(counts[form], 2000);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float odd : {infinity, -infinity, std::nanf("")}) {
    EXPECT_EQ(code_form({odd, 1.0f}), CodeForm::whole);
    EXPECT_EQ(code_form({1.0f, odd}), CodeForm::whole);
  }
}

std::vector<WeightType> gated_types() {
  std::vector<WeightType> types;
  for (const WeightType& type : weight_types()) {
    if (type.name == "q4x32" || type.name == "q4x64 offsets" || type.name == "q8x32" ||
        type.name == "q5x32 offsets multiples" || type.name == "q6x16 multiples") {
      types.push_back(type);
    }
  }
  return types;
}

// Gate, up and activation in one kernel, for few and many rows, against single operations.
TEST(CudaCodeProducts, FusedGates) {
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  int index = 0;
  for (const WeightType& type : gated_types()) {
    for (const int64_t inputs : cases_to_run<int64_t>({64, 1104, 3000}, 1, 2, 2)) {
      for (const int64_t rows : {1, 8, 21, 70}) {
        const MixtureShape shape{.rows = rows,
                                 .experts = 1,
                                 .slots = 1,
                                 .inputs = inputs,
                                 .last_width = index % 3 == 0 ? 352 : 64,
                                 .outputs = 37,
                                 .has_bias = index % 2 == 0};
        const MixtureInputs in(type, shape, cuda.threads, memory);
        GatedMlpWeights mlp = in.experts[0];
        mlp.activation = static_cast<Activation>(index++ % 4);
        const int64_t width = mlp.gate.count;
        const OwnedTensor both = allocate_tensor(memory, DType::f32, {rows, 2 * width});
        const OwnedTensor inner = allocate_tensor(memory, DType::f32, {rows, width});
        const OwnedTensor expected = allocate_tensor(memory, DType::f32, {rows, shape.outputs});
        cuda->matmul(in.x.view, *mlp.gate.matrix, mlp.gate.bias ? &*mlp.gate.bias : nullptr,
                     both.view);
        cuda->gated_activation(mlp.activation, both.view.slice(1, 0, width),
                               both.view.slice(1, width, 2 * width), inner.view);
        cuda->matmul(inner.view, *mlp.down.matrix, mlp.down.bias ? &*mlp.down.bias : nullptr,
                     expected.view);
        cuda->gated_mlp(mlp, in.x.view, in.out.view);
        EXPECT_SAME_BITS(to_vector(in.out.view), to_vector(expected.view))
            << type.name << ", " << rows << " rows of " << in.x.view.size(1);
      }
    }
  }
}

// A product and a feed-forward network, as bytes.
std::vector<std::byte> run_products(CudaDevice& device, const WeightType& type, int64_t rows,
                                    int64_t least_k) {
  ThreadPool threads(1);
  const auto backend = make_cuda_backend(device, threads);
  const int64_t k = type.row_length(least_k), width = type.row_length(64), n = 37;
  const auto pack = [&](int64_t columns, int64_t inputs, uint64_t seed) {
    const auto weights = random_rows(type.groups->grouping, columns, inputs, seed);
    const GroupedRows* const part = weights.get();
    return backend->pack_groups(std::span(&part, 1), type.groups->activations);
  };
  const PackedMatrix w = pack(n, k, 1), both = pack(2 * width, k, 2), down = pack(n, width, 3);
  Memory memory;
  const OwnedTensor made = random_tensor(memory, DType::f32, {rows, k}, 4);
  const OwnedTensor x = allocate_tensor(backend->memory(), DType::f32, {rows, k});
  backend->write({made.view.elements<float>(), static_cast<size_t>(rows * k)}, x.view);
  const OwnedTensor out = allocate_tensor(backend->memory(), DType::f32, {rows, n});
  std::vector<std::byte> results;
  const auto keep = [&] {
    std::vector<float> staging;
    const auto bytes = std::as_bytes(backend->read(out.view, staging));
    results.insert(results.end(), bytes.begin(), bytes.end());
  };
  backend->matmul(x.view, w, nullptr, out.view);
  keep();
  backend->gated_mlp(
      {.gate = {&both, 0, width}, .up = {&both, width, width}, .down = {&down, 0, n}}, x.view,
      out.view);
  keep();
  return results;
}

TEST(CudaCodeProducts, AreTheSameInEveryOrder) {
  for (const WeightType& type : gated_types()) {
    if (type.name != "q4x64 offsets" && type.name != "q6x16 multiples") continue;
    for (const auto& [rows, k] : {std::pair{2, 1104}, {5, 5 * 1024}, {40, 1104}}) {
      const auto run = [&](CudaDevice& device) { return run_products(device, type, rows, k); };
      EXPECT_FALSE(testing::same_in_every_order(run).empty());
    }
  }
}

// The last of 18 units stands where sums are then saved.
TEST(CudaCodeProducts, NeedTheirBarriers) {
  for (const WeightType& type : weight_types()) {
    if (type.name != "q4x64 offsets" && type.name != "q3x32") continue;
    for (const auto& [rows, k] : {std::pair{2, 1104}, {40, 1104}, {5, 5 * 1024}}) {
      const auto run = [&](CudaDevice& device) { return run_products(device, type, rows, k); };
      EXPECT_THAT(testing::needless_syncs(run), ::testing::IsEmpty()) << type.name << rows;
    }
  }
}

}  // namespace
}  // namespace paceline::cuda
