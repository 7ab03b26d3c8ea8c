// Files written by gguf-py, read as gguf-py reads them (tools/goldens/make_gguf_goldens.py).
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/json.h"
#include "base/mapped_file.h"
#include "tests/source_path.h"
#include "tests/weights/written_files.h"
#include "weights/gguf_checkpoint.h"
#include "weights/gguf_rows.h"
#include "weights/safetensors.h"

namespace paceline {
namespace {

const std::filesystem::path kGoldens = source_path("tests/goldens/gguf");

// What gguf-py's dequantize() returned, by name.
class GoldenValues {
 public:
  GoldenValues() : file_(kGoldens / "values.safetensors") {
    for (SafetensorsTensor& tensor : parse_safetensors_header(file_.bytes(), "values")) {
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
      by_name_.emplace(tensor.name, std::pair(tensor.shape, std::move(values)));
    }
  }
  size_t size() const { return by_name_.size(); }
  const Extents& shape(const std::string& name) const { return by_name_.at(name).first; }
  const std::vector<float>& values(const std::string& name) const {
    return by_name_.at(name).second;
  }

 private:
  MappedFile file_;
  std::map<std::string, std::pair<Extents, std::vector<float>>> by_name_;
};

size_t num_different_bits(std::span<const float> found, std::span<const float> expected) {
  EXPECT_EQ(found.size(), expected.size());
  size_t count = 0;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    count += std::bit_cast<uint32_t>(found[i]) == std::bit_cast<uint32_t>(expected[i]) ? 0 : 1;
  }
  return count;
}

std::vector<float> as_floats(const Tensor& tensor) {
  std::vector<float> values;
  with_float_dtype(tensor.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      values.push_back(to_float(tensor.elements<T>()[i]));
    }
  });
  return values;
}

// The file's tensors under their own names.
std::unique_ptr<Checkpoint> open_formats(Memory& memory) {
  const auto file = std::make_shared<const GgufFile>(kGoldens / "formats.gguf");
  std::vector<GgufTensorName> names;
  for (const GgufTensorInfo& tensor : file->tensors()) {
    names.push_back({.name = tensor.name,
                     .file_name = tensor.name,
                     .interleaved_heads = tensor.name.starts_with("interleaved.") ? 2 : 0});
  }
  return make_gguf_checkpoint(file, names, memory);
}

TEST(GgufGolden, EveryTensorReadsAsGgufPyReadsIt) {
  Memory memory;
  const GoldenValues golden;
  const auto checkpoint = open_formats(memory);
  ASSERT_EQ(checkpoint->entries().size(), golden.size());
  for (const CheckpointEntry& entry : checkpoint->entries()) {
    SCOPED_TRACE(entry.name);
    const Tensor tensor = checkpoint->read(entry.name, golden.shape(entry.name));
    EXPECT_EQ(tensor.dtype(), entry.dtype);
    EXPECT_EQ(num_different_bits(as_floats(tensor), golden.values(entry.name)), 0u);
  }
  EXPECT_GT(memory.stats().active_bytes, 0u);
  for (const CheckpointEntry& entry : checkpoint->entries()) checkpoint->release(entry.name);
  EXPECT_EQ(memory.stats().active_bytes, 0u);
}

TEST(GgufGolden, EveryBlockFormatIsThere) {
  const GgufFile file(kGoldens / "formats.gguf");
  EXPECT_EQ(gguf_block_formats().size(), 16u);
  for (const GgufBlockFormat& format : gguf_block_formats()) {
    const auto* tensor = file.find_tensor("random." + std::string(gguf_type_name(format.type)));
    ASSERT_NE(tensor, nullptr) << gguf_type_name(format.type);
    EXPECT_EQ(tensor->type, format.type);
  }
  for (const GgufTypeLayout& layout : kGgufTypes) {
    EXPECT_EQ(plain_dtype(layout.type).has_value(), find_block_format(layout.type) == nullptr);
  }
}

// scale * code + offset, in float64, against what the format's values are rounded to: one or two
// roundings to float32, or of the offset, which only the largest of the three terms bounds.
TEST(GgufGolden, CodesScalesAndOffsetsComeToTheValues) {
  Memory memory;
  const GoldenValues golden;
  const auto checkpoint = open_formats(memory);
  int num_matrices = 0;
  for (const CheckpointEntry& entry : checkpoint->entries()) {
    SCOPED_TRACE(entry.name);
    const auto rows = checkpoint->read_grouped(entry.name, entry.shape);
    if (rows == nullptr) continue;
    ++num_matrices;
    const Grouping grouping = rows->grouping();
    const auto length = static_cast<size_t>(rows->row_length());
    const auto group_size = static_cast<size_t>(grouping.group_size);
    std::vector<uint8_t> codes(length);
    std::vector<float> scales(length / group_size), offsets(length / group_size);
    for (int64_t row = 0; row < rows->num_rows(); ++row) {
      rows->read_codes(row, codes, scales, offsets);
      const float* expected = golden.values(entry.name).data() + static_cast<size_t>(row) * length;
      for (size_t i = 0; i < length; ++i) {
        const double scale = scales[i / group_size];
        const double offset = offsets[i / group_size];
        ASSERT_LT(codes[i], 1 << grouping.bits);
        const double product = scale * codes[i];
        const double largest = std::max({std::abs(product), std::abs(offset), 0x1p-126});
        ASSERT_NEAR(product + offset, expected[i], largest * 0x1p-23) << row << ", " << i;
      }
      for (size_t i = 0; grouping.zero_point && i < scales.size(); ++i) {
        ASSERT_EQ(offsets[i], -static_cast<float>(*grouping.zero_point) * scales[i]);
      }
    }
  }
  EXPECT_EQ(num_matrices, 16 + 6 + 1);  // random, quantised, interleaved
}

TEST(GgufGolden, GroupingsAreThoseOfTheFormats) {
  const std::map<GgufType, Grouping> expected = {
      {GgufType::q4_0, {4, 32, 8}},      {GgufType::q4_1, {4, 32, {}}},
      {GgufType::q5_0, {5, 32, 16}},     {GgufType::q5_1, {5, 32, {}}},
      {GgufType::q8_0, {8, 32, 128}},    {GgufType::q2_k, {2, 16, {}, 16}},
      {GgufType::q3_k, {4, 16, 4, 16}},  {GgufType::q4_k, {4, 32, {}, 8}},
      {GgufType::q5_k, {5, 32, {}, 8}},  {GgufType::q6_k, {6, 16, 32, 16}},
      {GgufType::iq4_nl, {8, 32, 128}},  {GgufType::iq4_xs, {8, 32, 128, 8}},
      {GgufType::mxfp4, {5, 32, 12}},    {GgufType::iq3_xxs, {6, 32, 31, 8}},
      {GgufType::iq3_s, {5, 32, 15, 8}}, {GgufType::nvfp4, {6, 16, 12}}};
  for (const GgufBlockFormat& format : gguf_block_formats()) {
    EXPECT_EQ(format.grouping, expected.at(format.type)) << gguf_type_name(format.type);
  }
}

// The golden catches errors: changing any bit of a block changes a value, unless the group's scale
// is zero, which it isn't in all of three blocks.
TEST(GgufGolden, AChangedBitOfABlockChangesTheValues) {
  const GgufFile file(kGoldens / "formats.gguf");
  for (const GgufBlockFormat& format : gguf_block_formats()) {
    SCOPED_TRACE(gguf_type_name(format.type));
    const GgufTypeLayout& layout = layout_of(format.type);
    const auto* tensor = file.find_tensor("random." + std::string(layout.name));
    ASSERT_NE(tensor, nullptr);
    const auto blocks = tensor->bytes.last(3 * layout.block_bytes);
    std::vector<std::byte> changed(blocks.begin(), blocks.end());
    const int64_t num_elements = 3 * static_cast<int64_t>(layout.block_elements);
    const GgufTensorInfo three{"", format.type, {1, num_elements}, changed};
    const GgufRows rows(three, format, {});
    std::vector<float> before(3 * layout.block_elements), after(before.size());
    rows.read_values(0, before);
    for (size_t bit = 0; bit < 8 * layout.block_bytes; ++bit) {
      const bool is_sign_of_scale = format.type == GgufType::nvfp4 && bit < 32 && bit % 8 == 7;
      if (is_sign_of_scale) continue;  // counts for nothing
      const auto change_bit = [&] {
        for (size_t at = bit / 8; at < changed.size(); at += layout.block_bytes) {
          changed[at] ^= static_cast<std::byte>(1 << (bit % 8));
        }
      };
      change_bit();
      rows.read_values(0, after);
      EXPECT_GT(num_different_bits(after, before), 0u) << "bit " << bit;
      change_bit();
    }
  }
}

void expect_array(const GgufMetadata& metadata, const std::string& key, const Json& expected,
                  const std::string& type) {
  const Json::Array& elements = expected.as_array(key);
  if (type == "string") {
    const auto found = metadata.strings(key);
    ASSERT_TRUE(found && found->size() == elements.size());
    for (size_t i = 0; i < elements.size(); ++i) EXPECT_EQ((*found)[i], elements[i].as_string(key));
  } else if (type == "float32") {
    const auto found = metadata.numbers(key);
    ASSERT_TRUE(found && found->size() == elements.size());
    for (size_t i = 0; i < elements.size(); ++i) EXPECT_EQ((*found)[i], elements[i].as_double(key));
  } else {
    const auto found = metadata.integers(key);
    ASSERT_TRUE(found && found->size() == elements.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      EXPECT_EQ((*found)[i], elements[i].is_bool() ? int64_t{elements[i].as_bool(key)}
                                                   : elements[i].as_int(key));
    }
  }
}

TEST(GgufGolden, MetadataReadsAsGgufPyReadsIt) {
  const GgufFile file(kGoldens / "metadata.gguf");
  const GgufMetadata& metadata = file.metadata();
  const Json golden = parse_json(read_text_file(kGoldens / "metadata.json", 1 << 16), "golden");
  ASSERT_EQ(metadata.values().size(), golden.as_object("golden").size());
  for (const auto& [key, described] : golden.as_object("golden")) {
    SCOPED_TRACE(key);
    const std::string& type = described.find("type")->as_string("type");
    const Json& expected = *described.find("value");
    ASSERT_TRUE(metadata.contains(key));
    EXPECT_EQ(metadata.is_array(key), expected.is_array());
    if (expected.is_array()) {
      expect_array(metadata, key, expected, type);
    } else if (type == "string") {
      EXPECT_EQ(metadata.string(key), expected.as_string(key));
    } else if (type == "bool") {
      EXPECT_EQ(metadata.boolean(key), expected.as_bool(key));
    } else if (type.starts_with("float")) {
      EXPECT_EQ(metadata.number(key), expected.as_double(key));
    } else {
      EXPECT_EQ(metadata.integer(key), expected.as_int(key));
      EXPECT_EQ(metadata.number(key), expected.as_double(key));
    }
  }
}

TEST(GgufGolden, SplitModelsAreOneFile) {
  const GgufFile file(kGoldens / "split-00001-of-00003.gguf");
  ASSERT_EQ(file.tensors().size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const GgufTensorInfo& tensor = file.tensors()[i];
    EXPECT_EQ(tensor.name, "tensor." + std::to_string(i));
    EXPECT_EQ(tensor.extents, (Extents{2, 3}));
    float last = 0;
    std::memcpy(&last, tensor.bytes.data() + tensor.bytes.size() - sizeof(last), sizeof(last));
    EXPECT_EQ(last, static_cast<float>(i));
    file.release_pages(tensor);
  }
}

}  // namespace
}  // namespace paceline
