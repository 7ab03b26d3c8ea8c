// Against mlx.core.dequantize: tools/goldens/make_mlx_goldens.py.
#include <fmt/format.h>

#include "tests/source_path.h"
#include "tests/weights/written_files.h"
#include "weights/affine_quantizer.h"
#include "weights/affine_rows.h"
#include "weights/checkpoint.h"
#include "weights/dequantize.h"

namespace paceline {
namespace {

constexpr int64_t kRows = 2, kColumns = 128;

class MlxGolden : public testing::Test {
 protected:
  MlxGolden() {
    const TestDirectory directory;
    std::filesystem::copy(source_path("tests/goldens/mlx/formats.safetensors"), directory.path());
    checkpoint_ = open_checkpoint(directory.path());
  }
  Tensor read(const std::string& name) {
    const auto shape = checkpoint_->shape_of(name);
    if (!shape) throw Error(ErrorCode::not_found, name);
    return checkpoint_->read(name, *shape);
  }

  std::unique_ptr<Checkpoint> checkpoint_;
  Memory memory_;
  ThreadPool threads_{1};
};

TEST_F(MlxGolden, ValuesAreThoseOfDequantizeBitForBit) {
  int count = 0;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int64_t group : {32, 64, 128}) {
      for (const std::string dtype : {"F32", "F16", "BF16"}) {
        const std::string name = fmt::format("B{}.G{}.{}", bits, group, dtype);
        SCOPED_TRACE(name);
        const AffineRows rows({.words = read(name + ".weight"),
                               .scales = read(name + ".scales"),
                               .biases = read(name + ".biases")},
                              {.bits = bits, .group_size = group});
        ASSERT_EQ(rows.num_rows(), kRows);
        ASSERT_EQ(rows.row_length(), kColumns);
        const OwnedTensor found = dequantize(rows, memory_, threads_);
        const Tensor expected = read(name + ".values");
        ASSERT_EQ(found.view.dtype(), expected.dtype());
        EXPECT_EQ(std::memcmp(found.view.raw(), expected.raw(), expected.size_bytes()), 0);
        ++count;
      }
    }
  }
  EXPECT_EQ(count, 54);
}

TEST_F(MlxGolden, QuantisingGivesMlxCodesScalesAndBiases) {
  const auto expect_equal = [&](const Tensor& found, const std::string& name) {
    const Tensor expected = read(name);
    ASSERT_EQ(found.dtype(), expected.dtype()) << name;
    ASSERT_EQ(found.shape(), expected.shape()) << name;
    EXPECT_EQ(std::memcmp(found.raw(), expected.raw(), expected.size_bytes()), 0) << name;
  };
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int64_t group : {32, 64, 128}) {
      for (const std::string dtype : {"F32", "F16", "BF16"}) {
        const std::string name = fmt::format("B{}.G{}.{}", bits, group, dtype);
        const OwnedAffineRows rows(read("INPUT." + dtype), {.bits = bits, .group_size = group},
                                   name, memory_, threads_);
        expect_equal(rows.tensors().words, name + ".weight");
        expect_equal(rows.tensors().scales, name + ".scales");
        expect_equal(rows.tensors().biases, name + ".biases");
      }
    }
  }
}

// The order of rounding matters, so the test above can catch a wrong one.
TEST_F(MlxGolden, ASingleRoundingGivesOtherBits) {
  const Tensor scales = read("B4.G64.BF16.scales"), biases = read("B4.G64.BF16.biases");
  const AffineRows rows({read("B4.G64.BF16.weight"), scales, biases}, {4, 64});
  std::vector<uint8_t> codes(kColumns);
  std::vector<float> scale(2), offset(2), values(kColumns);
  rows.read_codes(0, codes, scale, offset);
  rows.read_values(0, values);
  int different = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    const float once = scale[i / 64] * static_cast<float>(codes[i]) + offset[i / 64];
    if (to_float(to_bfloat16(once)) != values[i]) ++different;
  }
  EXPECT_GT(different, 10);
}

}  // namespace
}  // namespace paceline
