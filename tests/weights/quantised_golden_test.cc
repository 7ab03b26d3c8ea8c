// Against the libraries that own the formats: tools/goldens/make_quantised_goldens.py.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "tensor/float8.h"
#include "tests/source_path.h"
#include "weights/checkpoint.h"
#include "weights/published_quantisation.h"
#include "weights/quantised_checkpoint.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// A folder of tests/goldens/quantised.
class QuantisedGolden : public testing::TestWithParam<std::string> {
 protected:
  QuantisedGolden() {
    const fs::path folder = fs::path(source_path("tests/goldens/quantised")) / GetParam();
    auto settings = PublishedQuantisation::find(ModelFiles(folder));
    if (!settings) throw Error(ErrorCode::not_found, "no settings in " + folder.string());
    settings->keeps_float8 = true;
    source_ = open_only(folder / "model.safetensors");
    expected_ = open_only(folder / "expected.safetensors");
    checkpoint_ = std::make_unique<QuantisedCheckpoint>(*source_, *settings, memory_, threads_);
  }

  // The checkpoint of one file of a folder that has several.
  std::unique_ptr<Checkpoint> open_only(const fs::path& file) {
    const fs::path folder = directory_.path() / file.stem();
    fs::create_directory(folder);
    fs::copy_file(file, folder / "model.safetensors");
    return open_checkpoint(folder);
  }

  static std::vector<float> numbers(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
    copy_elements(tensor, Tensor(values.data(), DType::f32, tensor.shape()));
    return values;
  }

  // scale * code + offset of every element; of E4M3 rounded to the dtype.
  static std::vector<float> numbers(const GroupedRows& rows) {
    const auto length = static_cast<size_t>(rows.row_length());
    const auto size = static_cast<size_t>(rows.grouping().group_size);
    std::vector<uint8_t> codes(length);
    std::vector<float> scales(length / size), offsets(length / size), values;
    for (int64_t row = 0; row < rows.num_rows(); ++row) {
      rows.read_codes(row, codes, scales, offsets);
      const size_t begin = values.size();
      for (size_t i = 0; i < length && rows.grouping().is_float8(); ++i) {
        const float number = float8_values(DType::f8_e4m3)[codes[i]];
        values.push_back(to_float(to_bfloat16(number * scales[i / size])));
      }
      for (size_t i = 0; i < length && !rows.grouping().is_float8(); ++i) {
        values.push_back(scales[i / size] * static_cast<float>(codes[i]) + offsets[i / size]);
      }
      const std::span<const int32_t> order = rows.column_order();
      const std::vector<float> stored(values.begin() + static_cast<int64_t>(begin), values.end());
      for (size_t i = 0; i < order.size(); ++i) {
        values[begin + static_cast<size_t>(order[i])] = stored[i];
      }
    }
    return values;
  }

  TestDirectory directory_;
  Memory memory_;
  ThreadPool threads_{2};
  std::unique_ptr<Checkpoint> source_;
  std::unique_ptr<Checkpoint> expected_;
  std::unique_ptr<QuantisedCheckpoint> checkpoint_;
};

TEST_P(QuantisedGolden, ValuesAreThoseOfTheLibrary) {
  ASSERT_GT(expected_->entries().size(), 0u);
  std::set<std::string> names;
  for (const CheckpointEntry& entry : checkpoint_->entries()) names.insert(entry.name);
  for (const CheckpointEntry& entry : expected_->entries()) {
    SCOPED_TRACE(entry.name);
    ASSERT_EQ(names.erase(entry.name), 1u);
    ASSERT_EQ(checkpoint_->shape_of(entry.name), entry.shape);
    const Tensor found = checkpoint_->read(entry.name, entry.shape);
    EXPECT_EQ(found.dtype(), entry.dtype);
    const auto values = numbers(found);
    const auto expected = numbers(expected_->read(entry.name, entry.shape));
    const float tolerance = entry.name.starts_with("near") ? 0x1p-8f : 0.0f;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_LE(std::abs(values[i] - expected[i]), tolerance * std::abs(expected[i])) << i;
    }
    checkpoint_->release(entry.name);
  }
  EXPECT_TRUE(names.empty()) << *names.begin();
}

TEST_P(QuantisedGolden, PackedMatricesHaveTheSameValues) {
  for (const CheckpointEntry& entry : expected_->entries()) {
    if (entry.shape.rank() < 2) continue;
    const auto rows = checkpoint_->read_grouped(entry.name, entry.shape);
    if (rows == nullptr) continue;
    SCOPED_TRACE(entry.name);
    const auto values = numbers(*rows);
    const auto expected = numbers(expected_->read(entry.name, entry.shape));
    // The values are rounded to the dtype; a difference of a code and an offset, to theirs.
    float of_dtype = entry.dtype == DType::bf16 ? 0x1p-8f : 0x1p-11f;
    if (rows->grouping().is_float8()) of_dtype = 0.0f;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], expected[i], of_dtype * std::abs(expected[i]) + 1e-7f) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantisedGolden,
                         testing::Values("fp8", "compressed_tensors", "gptq", "gptq_v2", "awq",
                                         "bitsandbytes", "hqq", "modelopt", "mlx", "torchao",
                                         "torchao_described"),
                         [](const auto& param) { return param.param; });

// What a kernel reads as it is packed, and what it doesn't.
std::string description_of(const std::string& name, bool keeps_float8 = false) {
  const fs::path folder = fs::path(source_path("tests/goldens/quantised")) / name;
  const TestDirectory directory;
  fs::copy_file(folder / "model.safetensors", directory.path() / "model.safetensors");
  const auto source = open_checkpoint(directory.path());
  Memory memory;
  ThreadPool threads(1);
  auto settings = PublishedQuantisation::find(ModelFiles(folder));
  settings->keeps_float8 = keeps_float8;
  return QuantisedCheckpoint(*source, *settings, memory, threads).description();
}

TEST(QuantisedGoldenForms, AreDescribed) {
  EXPECT_EQ(description_of("awq"), "awq: 1 matrix packed (4 bits in groups of 64)");
  EXPECT_EQ(description_of("gptq"),
            "gptq: 1 matrix packed (2 bits in groups of 32), 1 matrix packed (3 bits in groups of "
            "32), 1 matrix packed (4 bits in groups of 32), 1 matrix packed (4 bits in groups of "
            "32, reordered), 1 matrix packed (4 bits with a scale for each row), 1 matrix packed "
            "(8 bits in groups of 32), 1 matrix packed (8 bits in groups of 64)");
  EXPECT_EQ(description_of("modelopt"),
            "modelopt: 1 matrix expanded to bfloat16 (float8_e4m3 with one scale), 1 matrix "
            "expanded to bfloat16 (floats of 4 bits in groups of 16, with scales of inputs), 1 "
            "matrix packed (floats of 4 bits in groups of 16)");
  EXPECT_EQ(description_of("modelopt", true),
            "modelopt: 1 matrix expanded to bfloat16 (floats of 4 bits in groups of 16, with "
            "scales of inputs), 1 matrix kept (float8_e4m3 with one scale), 1 matrix packed "
            "(floats of 4 bits in groups of 16)");
  EXPECT_EQ(description_of("torchao_described", true),
            "torchao: 1 matrix expanded to bfloat16 (4 bits in groups of 32, with scales of "
            "inputs), 2 matrices kept (float8_e4m3 with blocks of 1 x 32), 1 matrix kept "
            "(float8_e4m3 with blocks of 1 x 64), 3 matrices packed (4 bits in groups of 32), 1 "
            "matrix packed (8 bits in groups of 32), 1 matrix packed (8 bits with a scale for "
            "each row), 2 matrices packed (floats of 4 bits in groups of 16), 1 matrix packed "
            "(floats of 4 bits in groups of 32)");
}

}  // namespace
}  // namespace paceline
