// Products of rows that a norm has written rounded have the bits of products that round them.
#include <gtest/gtest.h>

#include "tests/cuda_backend/emulated_backend.h"
#include "tests/kernels/op_inputs.h"
#include "tests/kernels/same_bits.h"

namespace paceline::cuda {
namespace {

constexpr int64_t kNormedRows = 75, kProductColumns = 40;

class CudaNormedRows : public ::testing::TestWithParam<int64_t> {  // the width
 protected:
  // A product of the same values in other memory, which no norm has written.
  std::vector<float> product_of_copy(const Tensor& rows) {
    const std::vector<float> values = to_vector(rows);
    const OwnedTensor copy = allocate_tensor(memory, DType::f32, {rows.size(0), rows.size(1)});
    cuda->write(values, copy.view);
    return product_of(copy.view);
  }
  std::vector<float> product_of(const Tensor& rows) {
    const OwnedTensor out = allocate_tensor(memory, DType::f32, {rows.size(0), kProductColumns});
    cuda->matmul(rows, weights, nullptr, out.view);
    return to_vector(out.view);
  }

  EmulatedBackend cuda;
  Memory& memory = cuda->memory();
  PackedMatrix weights =
      random_matrix(memory, cuda.threads, DType::bf16, kProductColumns, GetParam(), 1);
  OwnedTensor x = random_tensor(memory, DType::f32, {kNormedRows, GetParam()}, 2);
  OwnedTensor norm_weight = random_tensor(memory, DType::f32, {GetParam()}, 3);
  OwnedTensor out = allocate_tensor(memory, DType::f32, {kNormedRows, GetParam()});
};

TEST_P(CudaNormedRows, AreMultipliedAsTheyAre) {
  cuda->rms_norm(x.view, norm_weight.view, 1e-5f, out.view);
  const std::vector<float> all = product_of(out.view), again = product_of(out.view);
  const std::vector<float> some = product_of(out.view.slice(0, 32, 70));
  const std::vector<float> others = product_of(out.view.slice(0, 5, 70));
  EXPECT_SAME_BITS(all, product_of_copy(out.view));
  EXPECT_SAME_BITS(again, all);
  EXPECT_SAME_BITS(some, product_of_copy(out.view.slice(0, 32, 70)));
  EXPECT_SAME_BITS(others, product_of_copy(out.view.slice(0, 5, 70)));
}

TEST_P(CudaNormedRows, OfASumAreMultipliedAsTheyAre) {
  const OwnedTensor branch = random_tensor(memory, DType::f32, {kNormedRows, GetParam()}, 4);
  const RmsNormWeights norm{norm_weight.view, 1e-5f};
  cuda->add_rms_norm(x.view, branch.view, &norm, norm, out.view);
  const std::vector<float> all = product_of(out.view);
  EXPECT_SAME_BITS(all, product_of_copy(out.view));
}

TEST_P(CudaNormedRows, AreForgottenWhenTheyChange) {
  cuda->rms_norm(x.view, norm_weight.view, 1e-5f, out.view);
  cuda->add(out.view, x.view, out.view);
  const std::vector<float> added = product_of(out.view);
  EXPECT_SAME_BITS(added, product_of_copy(out.view));
  cuda->rms_norm(x.view, norm_weight.view, 1e-5f, out.view);
  cuda->write(to_vector(x.view), out.view);
  EXPECT_SAME_BITS(product_of(out.view), product_of_copy(x.view));
}

INSTANTIATE_TEST_SUITE_P(Widths, CudaNormedRows, ::testing::Values(36, 64, 1100),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace paceline::cuda
