// Products have the bits that they had in November 2026, before they were products of warpgroups:
// the numerics rule fixes them, whatever the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/recurrent_inputs.h"

namespace paceline::cuda {
namespace {

// FNV-1a (Fowler, Noll, Vo).
uint64_t digest(const Tensor& out, uint64_t hash = 0xCBF29CE484222325u) {
  for (const float value : to_vector(out)) {
    hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001B3u;
  }
  return hash;
}

const WeightType& type_of(const std::string& name) {
  for (const WeightType& type : weight_types()) {
    if (type.name == name) return type;
  }
  throw std::runtime_error("no weight type " + name);
}

struct RecordedProduct {
  std::string type;
  int64_t inputs;
  int64_t columns;
  std::vector<std::pair<int64_t, uint64_t>> digests;  // of a number of rows
};

TEST(CudaRecordedBits, Products) {
  const RecordedProduct recorded[] = {
      {"bfloat16",
       1100,
       75,
       {{1, 0x1127044D426097C9},
        {9, 0x3C5C488FD74BB9A2},
        {70, 0x7654AA7D837AAB63},
        {200, 0x2858AFDAC003DB2B}}},
      {"bfloat16",
       2100,
       140,
       {{8, 0x0B42F502002A6987}, {64, 0xFF8987A1D77A4693}, {130, 0xB84BB2C387D71B78}}},
      {"q4x32",
       1120,
       75,
       {{1, 0x690D342402E55483}, {9, 0x19DD127977FB3746}, {70, 0x3D84EB6D3A949277}}},
      {"q8x64 offsets",
       1152,
       75,
       {{1, 0x3D3C6D3D44D7378A}, {9, 0xA184921D6A168E40}, {70, 0x168D06BEFD1362E2}}},
  };
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  for (const RecordedProduct& product : recorded) {
    const PackedMatrix w = random_matrix(memory, cuda.threads, type_of(product.type),
                                         product.columns, product.inputs, 3);
    for (const auto& [rows, expected] : product.digests) {
      const OwnedTensor x = random_tensor(memory, DType::f32, {rows, product.inputs}, 1);
      const OwnedTensor out = allocate_tensor(memory, DType::f32, {rows, product.columns});
      cuda->matmul(x.view, w, nullptr, out.view);
      EXPECT_EQ(digest(out.view), expected)
          << product.type << ", " << product.inputs << " inputs, " << rows << " rows";
    }
  }
}

TEST(CudaRecordedBits, FeedForwardNetworks) {
  constexpr int64_t kInputs = 1100, kWidth = 160, kColumns = 75;
  const std::pair<int64_t, uint64_t> recorded[] = {{1, 0xFCBCE7E4DE1C38B7},
                                                   {9, 0x58CF391FFC91D32B},
                                                   {70, 0x1979607883219F09},
                                                   {200, 0xD576E6C7A259C2D0}};
  EmulatedBackend cuda({.num_threads = 2});
  Memory& memory = cuda->memory();
  const PackedMatrix both =
      random_matrix(memory, cuda.threads, DType::bf16, 2 * kWidth, kInputs, 3);
  const PackedMatrix down = random_matrix(memory, cuda.threads, DType::bf16, kColumns, kWidth, 4);
  const GatedMlpWeights mlp{
      .gate = {&both, 0, kWidth}, .up = {&both, kWidth, kWidth}, .down = {&down, 0, kColumns}};
  for (const auto& [rows, expected] : recorded) {
    const OwnedTensor x = random_tensor(memory, DType::f32, {rows, kInputs}, 1);
    const OwnedTensor out = allocate_tensor(memory, DType::f32, {rows, kColumns});
    cuda->gated_mlp(mlp, x.view, out.view);
    EXPECT_EQ(digest(out.view), expected) << rows << " rows";
  }
}

// Those that they had when a chunk's products were added by one lane each.
TEST(CudaRecordedBits, DeltaRule) {
  struct Recorded {
    DeltaShape shape;
    uint64_t output, block;
  };
  const Recorded recorded[] = {
      {{.key_heads = 1, .value_heads = 2, .key_dim = 128, .value_dim = 40},
       0x0D6C7FFD33152898,
       0x53C593DCDBE3FE7A},
      {{.key_heads = 1, .value_heads = 1, .key_dim = 200, .value_dim = 32},
       0x748376EA4EB68025,
       0x73938809F800A179},
      {{.key_heads = 2, .value_heads = 4, .key_dim = 24, .value_dim = 16, .corrects = false},
       0xEDD1825A9CA4DCA4,
       0x331397D58BD24F34}};
  EmulatedBackend cuda({.num_threads = 2});
  for (const auto& [shape, output, block] : recorded) {
    const DeltaRowInputs in(cuda->memory(), shape, 71, 1, 5);
    for (const Tensor& memory : {in.states.view, in.open_rows.view}) {
      std::fill_n(memory.elements<float>(), memory.num_elements(), 0.0f);
    }
    for (const auto& [begin, end] : {std::pair{0, 37}, {37, 38}, {38, 71}}) {
      in.run(*cuda->recurrent(), begin, end, 0);
    }
    EXPECT_EQ(digest(in.out.view), output) << shape.key_dim;
    EXPECT_EQ(digest(in.open_rows.view, digest(in.states.view)), block) << shape.key_dim;
  }
}

}  // namespace
}  // namespace paceline::cuda
