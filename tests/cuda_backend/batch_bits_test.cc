// A row's bits on the CUDA backend are the same alone, in any batch and in any chunking.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/mixture_inputs.h"
#include "tests/kernels/op_inputs.h"
#include "tests/test_scale.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kMostRows = 255;

using RowRun = std::function<void(int64_t begin, int64_t end)>;

// Calls run for ranges of rows, which write those rows of `out`, and compares their bits with those
// of one call for all.
void expect_equal_rows(const std::string& what, const Tensor& out, const RowRun& run) {
  run(0, out.size(0));
  const std::vector<float> expected = to_vector(out);
  const auto width = static_cast<size_t>(out.num_elements() / out.size(0));
  const auto expect_range = [&](int64_t begin, int64_t end) {
    out.slice(0, begin, end).for_each_offset([&](int64_t offset) {
      out.row<float>(begin)[offset] = -1.0f;
    });
    run(begin, end);
    const std::vector<float> got = to_vector(out.slice(0, begin, end));
    EXPECT_EQ(std::memcmp(got.data(), expected.data() + static_cast<size_t>(begin) * width,
                          got.size() * sizeof(float)),
              0)
        << what << ", rows " << begin << " to " << end;
  };
  for (const int64_t count : {1, 2, 7, 8, 16, 33, 64}) expect_range(0, count);
  for (const int64_t row : {3, 8, 62, 254}) expect_range(row, row + 1);
  expect_range(5, 150);
  expect_range(150, kMostRows);
}

std::vector<WeightType> some_weight_types() {
  std::vector<WeightType> types;
  for (const WeightType& type : weight_types()) {
    if (!type.groups || type.name == "q4x32" || type.name == "q5x32 offsets multiples" ||
        type.name == "q8x64 offsets") {
      types.push_back(type);
    }
  }
  return types;
}

TEST(CudaBatchBits, Products) {
  EmulatedBackend cuda;
  for (const WeightType& type : some_weight_types()) {
    const int64_t k = type.row_length(1100), n = 21;
    const OwnedTensor x = random_tensor(cuda->memory(), DType::f32, {kMostRows, k}, 1);
    const OwnedTensor bias = random_tensor(cuda->memory(), DType::f32, {n}, 2);
    const OwnedTensor out = allocate_tensor(cuda->memory(), DType::f32, {kMostRows, n});
    const PackedMatrix w = random_matrix(cuda->memory(), cuda.threads, type, n, k, 3);
    expect_equal_rows("matmul " + type.name, out.view, [&](int64_t begin, int64_t end) {
      cuda->matmul(x.view.slice(0, begin, end), w, &bias.view, out.view.slice(0, begin, end));
    });
  }
}

// Tiles of several rows and columns, a row of which is compared with itself alone.
TEST(CudaBatchBits, ProductsInManyTiles) {
  EmulatedBackend cuda({.num_threads = 2});
  constexpr int64_t kRows = 1250, kInputs = 36, kColumns = 300;
  const OwnedTensor x = random_tensor(cuda->memory(), DType::f32, {kRows, kInputs}, 1);
  const OwnedTensor out = allocate_tensor(cuda->memory(), DType::f32, {kRows, kColumns});
  const OwnedTensor alone = allocate_tensor(cuda->memory(), DType::f32, {1, kColumns});
  const PackedMatrix w =
      random_matrix(cuda->memory(), cuda.threads, DType::bf16, kColumns, kInputs, 2);
  cuda->matmul(x.view, w, nullptr, out.view);
  for (int64_t row = 0; row < kRows; row += 37) {
    cuda->matmul(x.view.slice(0, row, row + 1), w, nullptr, alone.view);
    EXPECT_EQ(to_vector(out.view.slice(0, row, row + 1)), to_vector(alone.view)) << row;
  }
}

// Each number of segments has a kernel of its own for few rows: nine rows in tiles, then eight and
// one.
TEST(CudaBatchBits, ProductsOfAnyNumberOfSegments) {
  EmulatedBackend cuda({.num_threads = 2});
  constexpr int64_t kColumns = 43, kRows = 9, kWidth = 32;
  Memory& memory = cuda->memory();
  const OwnedTensor out = allocate_tensor(memory, DType::f32, {kRows, kColumns});
  const PackedMatrix down = random_matrix(memory, cuda.threads, DType::bf16, kColumns, kWidth, 4);
  for (const int64_t k : {1024, 1152, 2048, 2052, 3000, 4096, 4100, 9300}) {
    const OwnedTensor x = random_tensor(memory, DType::f32, {kRows, k}, 1);
    const PackedMatrix w = random_matrix(memory, cuda.threads, DType::bf16, kColumns, k, 2);
    const PackedMatrix both = random_matrix(memory, cuda.threads, DType::bf16, 2 * kWidth, k, 3);
    const GatedMlpWeights mlp{
        .gate = {&both, 0, kWidth}, .up = {&both, kWidth, kWidth}, .down = {&down, 0, kColumns}};
    const auto multiply = [&](int64_t begin, int64_t end) {
      cuda->matmul(x.view.slice(0, begin, end), w, nullptr, out.view.slice(0, begin, end));
    };
    const auto run_mlp = [&](int64_t begin, int64_t end) {
      cuda->gated_mlp(mlp, x.view.slice(0, begin, end), out.view.slice(0, begin, end));
    };
    const auto expect_equal_bits = [&](auto&& compute) {
      compute(0, kRows);
      const std::vector<float> expected = to_vector(out.view);
      compute(0, kRows - 1);
      compute(kRows - 1, kRows);
      EXPECT_EQ(to_vector(out.view), expected) << k;
    };
    expect_equal_bits(multiply);
    expect_equal_bits(run_mlp);
  }
}

// GPUs of compute capability 8.6 and 8.9 have 99 KiB of shared memory for a block: too little for
// tiles of 128 rows, and for eight segments of few rows.
TEST(CudaBatchBits, ProductsInLessSharedMemory) {
  constexpr uint32_t kAda = 99 * 1024;
  constexpr int64_t kRows = 70, kColumns = 130;
  const auto products_in = [&](uint32_t shared_bytes, const WeightType& type) {
    EmulatedBackend cuda({.num_threads = 2, .shared_bytes = shared_bytes});
    Memory& memory = cuda->memory();
    const int64_t num_inputs = type.row_length(4200), num_inner = type.row_length(60);
    const OwnedTensor x = random_tensor(memory, DType::f32, {kRows, num_inputs}, 1);
    const OwnedTensor out = allocate_tensor(memory, DType::f32, {kRows, kColumns});
    const PackedMatrix w = random_matrix(memory, cuda.threads, type, kColumns, num_inputs, 2);
    const PackedMatrix both =
        random_matrix(memory, cuda.threads, type, 2 * num_inner, num_inputs, 3);
    const PackedMatrix down = random_matrix(memory, cuda.threads, type, kColumns, num_inner, 4);
    const GatedMlpWeights mlp{.gate = {&both, 0, num_inner},
                              .up = {&both, num_inner, num_inner},
                              .down = {&down, 0, kColumns}};
    std::vector<float> all;
    for (const int64_t rows : {1, 8, 70}) {
      const Tensor inputs = x.view.slice(0, 0, rows), outputs = out.view.slice(0, 0, rows);
      cuda->matmul(inputs, w, nullptr, outputs);
      const std::vector<float> product = to_vector(outputs);
      cuda->gated_mlp(mlp, inputs, outputs);
      const std::vector<float> gated = to_vector(outputs);
      all.insert(all.end(), product.begin(), product.end());
      all.insert(all.end(), gated.begin(), gated.end());
    }
    return all;
  };
  for (const WeightType& type : cases_to_run(some_weight_types(), 0, 2, 2)) {
    EXPECT_EQ(products_in(kAda, type), products_in(kMostSharedBytes, type)) << type.name;
  }
}

// Inputs that don't begin at multiples of 16 bytes, and an odd number of inputs, have kernels of
// their own for few rows.
TEST(CudaBatchBits, ProductsOfInputsThatCantBeCopied) {
  EmulatedBackend cuda;
  for (const int64_t k : {1100, 1101, 1102}) {
    const OwnedTensor wide = random_tensor(cuda->memory(), DType::f32, {9, k + 5}, 1);
    const Tensor x = wide.view.slice(1, 1, k + 1);
    const OwnedTensor out = allocate_tensor(cuda->memory(), DType::f32, {9, 40});
    const OwnedTensor apart = allocate_tensor(cuda->memory(), DType::f32, {9, k});
    const OwnedTensor few = allocate_tensor(cuda->memory(), DType::f32, {8, 40});
    copy_elements(x, apart.view);
    const PackedMatrix w = random_matrix(cuda->memory(), cuda.threads, DType::bf16, 40, k, 2);
    cuda->matmul(x, w, nullptr, out.view);
    const std::vector<float> expected = to_vector(out.view.slice(0, 0, 8));
    for (const Tensor& inputs : {x, apart.view}) {
      cuda->matmul(inputs.slice(0, 0, 8), w, nullptr, few.view);
      EXPECT_EQ(to_vector(few.view), expected) << k;
    }
  }
}

TEST(CudaBatchBits, Mixtures) {
  EmulatedBackend cuda;
  for (const WeightType& type : some_weight_types()) {
    const MixtureInputs in(type, {.rows = kMostRows, .inputs = 64}, cuda.threads, cuda->memory());
    expect_equal_rows("mix_experts " + type.name, in.out.view, [&](int64_t begin, int64_t end) {
      const Routing routing = in.routing();
      cuda->mix_experts(
          in.experts, {routing.experts.slice(0, begin, end), routing.weights.slice(0, begin, end)},
          in.x.view.slice(0, begin, end), in.out.view.slice(0, begin, end));
    });
  }
}

TEST(CudaBatchBits, Norms) {
  EmulatedBackend cuda;
  const OwnedTensor x = random_tensor(cuda->memory(), DType::f32, {kMostRows, 300}, 1);
  const OwnedTensor weight = random_tensor(cuda->memory(), DType::f32, {300}, 2);
  const OwnedTensor out = allocate_tensor(cuda->memory(), DType::f32, {kMostRows, 300});
  expect_equal_rows("rms_norm", out.view, [&](int64_t begin, int64_t end) {
    cuda->rms_norm(x.view.slice(0, begin, end), weight.view, 1e-5f, out.view.slice(0, begin, end));
  });
}

// A prompt in one piece, in chunks and token by token.
TEST(CudaBatchBits, Attention) {
  EmulatedBackend cuda;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i8}) {
    for (const int64_t window : {0, 70}) {
      const AttentionShape shape{.heads = 6,
                                 .dtype = dtype,
                                 .params = {.scale = 0.2f, .window = window},
                                 .slices = {{0, kMostRows}}};
      const AttentionInputs in(shape, 1, 2, cuda->memory());
      const OwnedTensor out = allocate_tensor(cuda->memory(), DType::f32, in.q.view.shape());
      const OwnedTensor sums = allocate_tensor(cuda->memory(), DType::f32, {kMostRows, 6});
      expect_equal_rows(shape.name(), out.view, [&](int64_t begin, int64_t end) {
        const AttentionSlice slice{0, end - begin, begin, in.block_tables[0]};
        const Tensor part = sums.view.slice(0, begin, end);
        cuda->attention(in.q.view.slice(0, begin, end), in.store(), std::span(&slice, 1),
                        shape.params, out.view.slice(0, begin, end), &part);
      });
    }
  }
}

}  // namespace
}  // namespace paceline::cuda
