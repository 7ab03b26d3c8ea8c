// Operations that the backend makes of others have their bits: feed-forward networks, mixtures,
// adapters, gathered columns.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "kernels/cuda/code/place_heads.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operand_views.h"
#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/mixture_inputs.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/same_bits.h"

namespace paceline::cuda {
namespace {

std::vector<WeightType> composed_types() {
  std::vector<WeightType> types;
  for (const WeightType& type : weight_types()) {
    if (!type.groups || type.name == "q4x64 offsets" || type.name == "q6x16 multiples") {
      types.push_back(type);
    }
  }
  return types;
}

void expect_same_bits(const Tensor& found, const Tensor& expected, const std::string& what) {
  EXPECT_SAME_BITS(to_vector(found), to_vector(expected)) << what;
}

// out = activation(x * gate^T) * (x * up^T), times down^T, by single operations.
void compute_mlp(Backend& backend, const GatedMlpWeights& mlp, const Tensor& x, const Tensor& out) {
  Memory& memory = backend.memory();
  const auto multiply = [&](const PackedColumns& columns) {
    OwnedTensor all = allocate_tensor(memory, DType::f32, {x.size(0), columns.matrix->n});
    backend.matmul(x, *columns.matrix, columns.bias ? &*columns.bias : nullptr, all.view);
    return all;
  };
  const auto columns_of = [](const OwnedTensor& all, const PackedColumns& columns) {
    return all.view.slice(1, columns.first, columns.first + columns.count);
  };
  const OwnedTensor gates = multiply(mlp.gate), ups = multiply(mlp.up);
  const OwnedTensor inner = allocate_tensor(memory, DType::f32, {x.size(0), mlp.gate.count});
  backend.gated_activation(mlp.activation, columns_of(gates, mlp.gate), columns_of(ups, mlp.up),
                           inner.view);
  backend.matmul(inner.view, *mlp.down.matrix, mlp.down.bias ? &*mlp.down.bias : nullptr, out);
}

const MixtureShape kShape = {.rows = 19,
                             .experts = 5,
                             .slots = 3,
                             .inputs = 1052,
                             .width = 45,
                             .last_width = 24,
                             .outputs = 37,
                             .has_bias = true};

void expect_composed(EmulatedBackend& cuda, const GatedMlpWeights& mlp, const MixtureInputs& in,
                     const std::string& what) {
  const OwnedTensor expected = allocate_tensor(cuda->memory(), DType::f32, in.out.view.shape());
  compute_mlp(*cuda, mlp, in.x.view, expected.view);
  cuda->gated_mlp(mlp, in.x.view, in.out.view);
  expect_same_bits(in.out.view, expected.view, what);
}

TEST(CudaCompositions, FeedForwardNetworks) {
  EmulatedBackend cuda({.num_threads = 2});
  for (const WeightType& type : composed_types()) {
    const MixtureInputs in(type, kShape, cuda.threads, cuda->memory());
    for (const GatedMlpWeights& expert : in.experts) expect_composed(cuda, expert, in, type.name);
  }
}

// Gate and up begin at the same place of a panel: one kernel multiplies both. Each activation, few
// and many rows, K in one segment and split.
TEST(CudaCompositions, FusedGates) {
  EmulatedBackend cuda({.num_threads = 2});
  const WeightType type{"bfloat16", DType::bf16, {}};
  int index = 0;
  for (const int64_t rows : {1, 8, 33, 70}) {
    for (const int64_t inputs : {52, 1104}) {
      for (const int64_t width : {64, 160}) {
        const MixtureShape shape{.rows = rows,
                                 .experts = 1,
                                 .slots = 1,
                                 .inputs = inputs,
                                 .last_width = width,
                                 .outputs = 37,
                                 .has_bias = index % 2 == 0};
        const MixtureInputs in(type, shape, cuda.threads, cuda->memory());
        GatedMlpWeights mlp = in.experts[0];
        mlp.activation = static_cast<Activation>(index++ % 4);
        expect_composed(cuda, mlp, in, "width " + std::to_string(width));
      }
    }
  }
}

// Matrices of their own, with an odd number of columns.
TEST(CudaCompositions, FusedGatesOfSeveralMatrices) {
  EmulatedBackend cuda({.num_threads = 2});
  for (const int64_t rows : {3, 40}) {
    const MixtureShape shape{
        .rows = rows, .experts = 1, .slots = 1, .inputs = 68, .last_width = 75};
    const WeightType type{"bfloat16", DType::bf16, {}};
    const MixtureInputs in(type, shape, cuda.threads, cuda->memory());
    const PackedMatrix gate = random_matrix(cuda->memory(), cuda.threads, type, 75, 68, 1);
    const PackedMatrix up = random_matrix(cuda->memory(), cuda.threads, type, 75, 68, 2);
    expect_composed(cuda, {.gate = {&gate, 0, 75}, .up = {&up, 0, 75}, .down = in.experts[0].down},
                    in, "rows " + std::to_string(rows));
  }
}

// Each row's experts in turn, by single operations.
void expect_mixture(EmulatedBackend& cuda, std::span<const GatedMlpWeights> experts,
                    const MixtureInputs& in, const std::string& what) {
  const Extents shape = in.out.view.shape();
  const OwnedTensor expected = allocate_tensor(cuda->memory(), DType::f32, shape);
  const OwnedTensor product = allocate_tensor(cuda->memory(), DType::f32, {1, shape[1]});
  for (int64_t r = 0; r < shape[0]; ++r) {
    const ChosenRow chosen = in.routing().row(r);
    for (int64_t slot = 0; slot < in.routing().num_slots(); ++slot) {
      compute_mlp(*cuda, experts[static_cast<size_t>(chosen.experts[slot])],
                  in.x.view.slice(0, r, r + 1), product.view);
      for (int64_t i = 0; i < shape[1]; ++i) {
        float& sum = expected.view.row<float>(r)[i];
        sum = std::fma(chosen.weights[slot], product.view.row<float>(0)[i], sum);
      }
    }
  }
  cuda->mix_experts(experts, in.routing(), in.x.view, in.out.view);
  expect_same_bits(in.out.view, expected.view, what);
}

TEST(CudaCompositions, Mixtures) {
  EmulatedBackend cuda({.num_threads = 2});
  for (const WeightType& type : composed_types()) {
    const MixtureInputs in(type, kShape, cuda.threads, cuda->memory());
    expect_mixture(cuda, in.experts, in, type.name);
  }
}

// Experts that different kernels multiply.
TEST(CudaCompositions, MixturesOfSeveralTypes) {
  EmulatedBackend cuda({.num_threads = 2});
  for (const int64_t rows : {5, 19}) {
    std::vector<std::unique_ptr<MixtureInputs>> mixtures;
    std::vector<GatedMlpWeights> experts;
    const std::vector<WeightType> types = composed_types();
    const MixtureShape shape{
        .rows = rows, .experts = std::ssize(types), .slots = 3, .inputs = 256, .last_width = 24};
    for (size_t i = 0; i < types.size(); ++i) {
      mixtures.push_back(
          std::make_unique<MixtureInputs>(types[i], shape, cuda.threads, cuda->memory()));
      experts.push_back(mixtures.back()->experts[i]);
    }
    expect_mixture(cuda, experts, *mixtures.front(), std::to_string(rows) + " rows");
  }
}

// Where the choice stays on the device no expert is looked up that doesn't exist.
TEST(CudaCompositions, ExpertsThatDoNotExistSpoilNoOtherRow) {
  EmulatedBackend cuda({.num_threads = 2});
  for (const WeightType& type : composed_types()) {
    const MixtureInputs in(type, {.rows = 4, .experts = 3}, cuda.threads, cuda->memory());
    cuda->mix_experts(in.experts, in.routing(), in.x.view, in.out.view);
    const std::vector<float> expected = to_vector(in.out.view);
    in.chosen.view.row<int32_t>(1)[1] = 3;
    in.chosen.view.row<int32_t>(2)[0] = -1;
    cuda->mix_experts(in.experts, in.routing(), in.x.view, in.out.view);
    const std::vector<float> found = to_vector(in.out.view);
    const size_t width = expected.size() / 4;
    for (const size_t row : {0u, 3u}) {
      for (size_t i = row * width; i < (row + 1) * width; ++i) ASSERT_EQ(found[i], expected[i]);
    }
  }
}

// What a residual's addition leaves: the sum, and its norm.
TEST(CudaCompositions, AdditionsAndNorms) {
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  for (const int64_t width : {1, 33, 260, 1152, 9000}) {  // up to 4,096 a row is read once
    for (const bool has_branch_norm : {false, true}) {
      const Extents shape = {3, width};
      const OwnedTensor residual = random_tensor(memory, DType::f32, shape, 1);
      const OwnedTensor sum = random_tensor(memory, DType::f32, shape, 1);
      const OwnedTensor branch = random_tensor(memory, DType::f32, shape, 2);
      const OwnedTensor normed = random_tensor(memory, DType::f32, shape, 2);
      const OwnedTensor weights = random_tensor(memory, DType::f32, {2, width}, 3);
      const RmsNormWeights first{weights.view.slice(0, 0, 1).reshape({width}), 1e-3f};
      const RmsNormWeights second{weights.view.slice(0, 1, 2).reshape({width}), 1e-6f};
      if (has_branch_norm) cuda->rms_norm(normed.view, first.weight, first.eps, normed.view);
      cuda->add(sum.view, normed.view, sum.view);
      cuda->rms_norm(sum.view, second.weight, second.eps, normed.view);
      cuda->add_rms_norm(residual.view, branch.view, has_branch_norm ? &first : nullptr, second,
                         branch.view);
      expect_same_bits(residual.view, sum.view, "the sum of " + std::to_string(width));
      expect_same_bits(branch.view, normed.view, "the norm of " + std::to_string(width));
    }
  }
}

struct PlacedHeads {
  PlacedHeads(Memory& memory, DType dtype, int64_t head_dim)
      : qkv(random_tensor(memory, DType::f32, {6, 9 * head_dim}, 1, 2.0f)),
        stored(memory, dtype, 2, 2, head_dim, 16) {}

  // Of 5, 2 and 2 heads.
  Tensor heads(int64_t first, int64_t count) const {
    const int64_t dims = qkv.view.size(1) / 9;
    return qkv.view.as_strided({6, count, dims}, {9 * dims, dims, 1}, first * dims);
  }
  Tensor q() const { return heads(0, 5); }
  Tensor k() const { return heads(5, 2); }
  Tensor v() const { return heads(7, 2); }
  std::vector<std::byte> stored_bytes() const {
    std::vector<std::byte> bytes;
    for (const OwnedTensor* part :
         {&stored.keys, &stored.values, &stored.key_scales, &stored.value_scales}) {
      if (part->view.raw() == nullptr) continue;
      const auto* const first = static_cast<const std::byte*>(part->view.raw());
      bytes.insert(bytes.end(), first, first + part->view.size_bytes());
    }
    return bytes;
  }

  OwnedTensor qkv;
  OwnedStore stored;
};

void place_by_steps(Backend& backend, const HeadPlacement& how, const PlacedHeads& heads,
                    std::span<const int64_t> slots) {
  if (how.q_norm) backend.rms_norm(heads.q(), how.q_norm->weight, how.q_norm->eps, heads.q());
  if (how.k_norm) backend.rms_norm(heads.k(), how.k_norm->weight, how.k_norm->eps, heads.k());
  if (how.rope_table != nullptr) {
    backend.rope(*how.rope_table, how.pairs, heads.q());
    backend.rope(*how.rope_table, how.pairs, heads.k());
  }
  backend.store_kv(heads.k(), heads.v(), slots, heads.stored.view());
}

// 520 elements are more than a warp has room for.
TEST(CudaCompositions, PlacedHeadsAndStores) {
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  const std::vector<int64_t> slots = {3, 17, 0, 31, 16, 9};
  int index = 0;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    for (const int64_t dims : {6, 40, 64, 128, 290, 512, 520}) {
      const PlacedHeads fused(memory, dtype, dims), steps(memory, dtype, dims);
      const OwnedTensor norms = random_tensor(memory, DType::f32, {2, dims}, 2);
      const OwnedTensor table =
          random_tensor(memory, DType::f32, {6, dims / (2 + index % 3), 2}, 3);
      HeadPlacement how{.pairs = static_cast<RopePairs>(index % 2)};
      if (index % 5 > 0) how.rope_table = &table.view;
      if (index % 4 > 0) {
        how.q_norm = {norms.view.slice(0, 0, 1).reshape({dims}), 1e-3f};
        how.k_norm = {norms.view.slice(0, 1, 2).reshape({dims}), 1e-6f};
      }
      ++index;
      place_by_steps(*cuda, how, steps, slots);
      cuda->place_heads(how, fused.q(), fused.k(), fused.v(), slots, fused.stored.view());
      const std::string what = std::string(dtype_name(dtype)) + " " + std::to_string(dims);
      expect_same_bits(fused.q(), steps.q(), what);
      EXPECT_EQ(fused.stored_bytes(), steps.stored_bytes()) << what;
    }
  }
}

// The row of an empty slot is placed, but not stored.
TEST(CudaCompositions, PlacedHeadsOfEmptySlotsAreNotStored) {
  EmulatedBackend cuda;
  constexpr int64_t kDims = 8, kBlocks = 2, kBlock = 16;
  const OwnedTensor rows = random_tensor(cuda->memory(), DType::f32, {2, 3, kDims}, 1);
  const Tensor q = rows.view.slice(1, 0, 1), k = rows.view.slice(1, 1, 2);
  const Tensor v = rows.view.slice(1, 2, 3);
  const OwnedStore stored(cuda->memory(), DType::f32, kBlocks, 1, kDims, kBlock);
  const OwnedStore expected(cuda->memory(), DType::f32, kBlocks, 1, kDims, kBlock);
  const OwnedTensor slots = allocate_tensor(cuda->memory(), DType::f32, {4});
  auto* const first_slot = static_cast<int64_t*>(slots.view.raw());
  first_slot[0] = -1;
  first_slot[1] = 7;
  launch<PlaceHeads<float>>(*cuda.device, {2},
                            {.q = heads_of(q),
                             .k = heads_of(k),
                             .v = heads_of(v),
                             .slots = first_slot,
                             .kv = kv_blocks(stored.view())});
  cuda->store_kv(k.slice(0, 1, 2), v.slice(0, 1, 2), std::vector<int64_t>{7}, expected.view());
  EXPECT_EQ(stored.elements(), expected.elements());
}

TEST(CudaCompositions, Adapters) {
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  constexpr int64_t kRows = 21, kInputs = 1100, kRank = 6, kColumns = 35;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const PackedMatrix a = random_matrix(memory, cuda.threads, dtype, 3 * kRank, kInputs, 1);
    const PackedMatrix b = random_matrix(memory, cuda.threads, dtype, kColumns, kRank, 2);
    const OwnedTensor x = random_tensor(memory, DType::f32, {kRows, kInputs}, 3);
    const OwnedTensor out = random_tensor(memory, DType::f32, {kRows, 100}, 4);
    const OwnedTensor expected = random_tensor(memory, DType::f32, {kRows, 100}, 4);
    const LoraSegment segment{
        .first_row = 3, .num_rows = 11, .a = &a, .first_rank = kRank, .b = &b, .first_column = 50};
    const OwnedTensor inner = allocate_tensor(memory, DType::f32, {11, 3 * kRank});
    const OwnedTensor delta = allocate_tensor(memory, DType::f32, {11, kColumns});
    cuda->matmul(x.view.slice(0, 3, 14), a, nullptr, inner.view);
    cuda->matmul(inner.view.slice(1, kRank, 2 * kRank), b, nullptr, delta.view);
    const Tensor sums = expected.view.slice(0, 3, 14).slice(1, 50, 50 + kColumns);
    cuda->add(sums, delta.view, sums);
    cuda->add_lora(x.view, std::span(&segment, 1), out.view);
    expect_same_bits(out.view, expected.view, std::string(dtype_name(dtype)));
  }
}

TEST(CudaCompositions, GatheredColumns) {
  EmulatedBackend cuda({.num_threads = 2});
  const std::vector<int32_t> columns = {69, 0, 33, 33, 5};
  for (const WeightType& type : weight_types()) {
    const int64_t k = type.row_length(1100);
    const PackedMatrix w = random_matrix(cuda->memory(), cuda.threads, type, 70, k, 1);
    const OwnedTensor x = random_tensor(cuda->memory(), DType::f32, {2, k}, 2);
    const OwnedTensor all = allocate_tensor(cuda->memory(), DType::f32, {2, 70});
    const OwnedTensor some = allocate_tensor(cuda->memory(), DType::f32, {2, 5});
    cuda->matmul(x.view, w, nullptr, all.view);
    cuda->matmul(x.view, cuda->gather_columns(w, columns), nullptr, some.view);
    for (int64_t r = 0; r < 2; ++r) {
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(some.view.row<float>(r)[i],
                  all.view.row<float>(r)[columns[static_cast<size_t>(i)]])
            << type.name;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::cuda
