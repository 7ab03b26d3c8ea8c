// Files written by the safetensors library (tools/goldens/make_safetensors_goldens.py) and by
// transformers (tools/goldens/make_model_goldens.py).
#include <algorithm>
#include <bit>
#include <cctype>
#include <map>

#include "base/json.h"
#include "base/mapped_file.h"
#include "tests/weights/written_files.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

const std::filesystem::path kSafetensorsGoldens =
    std::filesystem::path(PACELINE_SOURCE_DIR) / "tests/goldens";

bool is_nan(uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }

void expect_golden(const std::string& directory) {
  const auto checkpoint = open_checkpoint(kSafetensorsGoldens / "weights" / directory);
  const Json golden =
      parse_json(read_text_file(kSafetensorsGoldens / "weights/golden.json", 1 << 20), "golden");
  ASSERT_EQ(checkpoint->entries().size(), golden.as_object("golden").size());
  for (const auto& [name, expected] : golden.as_object("golden")) {
    SCOPED_TRACE(name);
    std::vector<int64_t> sizes;
    for (const Json& size : expected.find("shape")->as_array("shape")) {
      sizes.push_back(size.as_int("shape"));
    }
    const Tensor tensor = checkpoint->read(name, Extents(sizes));
    EXPECT_EQ(dtype_name(tensor.dtype()), expected.find("dtype")->as_string("dtype"));
    const Json::Array& elements = expected.find("float_bits")->as_array("float_bits");
    ASSERT_EQ(static_cast<size_t>(tensor.num_elements()), elements.size());
    with_float_dtype(tensor.dtype(), [&]<class T>() {
      for (size_t i = 0; i < elements.size(); ++i) {
        const auto bits = std::bit_cast<uint32_t>(to_float(tensor.elements<T>()[i]));
        const auto expected_bits = static_cast<uint32_t>(elements[i].as_int("float_bits"));
        EXPECT_TRUE(bits == expected_bits || (is_nan(bits) && is_nan(expected_bits)))
            << i << ": " << bits << ", expected " << expected_bits;
      }
    });
  }
}

TEST(SafetensorsGolden, ASingleFileReadsAsWritten) { expect_golden("single"); }

TEST(SafetensorsGolden, SeveralFilesReadAsWritten) { expect_golden("several"); }

TEST(SafetensorsGolden, OtherDTypesAreReadOrRefusedByName) {
  const std::map<std::string, DType> readable = {{"f8_e4m3", DType::f8_e4m3},
                                                 {"f8_e5m2", DType::f8_e5m2},
                                                 {"i8", DType::i8},
                                                 {"i32", DType::i32},
                                                 {"i64", DType::i64}};
  size_t count = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(kSafetensorsGoldens / "weights/dtypes")) {
    const std::string stem = file.path().stem().string();
    std::string dtype = stem;
    std::ranges::transform(dtype, dtype.begin(), [](unsigned char c) { return std::toupper(c); });
    const MappedFile mapped(file.path());
    if (const auto known = readable.find(stem); known != readable.end()) {
      const auto tensors = parse_safetensors_header(mapped.bytes(), stem);
      ASSERT_EQ(tensors.size(), 2u);
      EXPECT_EQ(tensors[1].dtype, known->second);
      ++count;
      continue;
    }
    expect_error(ErrorCode::unsupported,
                 {file.path().string(), "tensor \"of." + stem + "\": dtype: " + dtype + " "},
                 [&] { parse_safetensors_header(mapped.bytes(), file.path().string()); });
    ++count;
  }
  EXPECT_EQ(count, 8u);
}

TEST(SafetensorsGolden, ShardsSavedByTransformersAreOneCheckpoint) {
  const auto checkpoint =
      open_checkpoint(kSafetensorsGoldens / "models/qwen3_untied_linear_sharded");
  int64_t num_parameters = 0;
  for (const CheckpointEntry& entry : checkpoint->entries()) {
    num_parameters += checkpoint->read(entry.name, entry.shape).num_elements();
  }
  EXPECT_EQ(num_parameters, 35'024);  // total_parameters of the index
}

TEST(SafetensorsGolden, ModelsSavedByTransformersHaveTheirPrefixFound) {
  struct Case {
    std::string directory, embedding;
  };
  for (const auto& [directory, embedding] : std::vector<Case>{
           {"llama_plain", "model.embed_tokens.weight"},
           {"gemma3_model_prefix", "model.language_model.embed_tokens.weight"},
           {"gemma3_language_model_prefix", "language_model.model.embed_tokens.weight"}}) {
    const auto checkpoint = open_checkpoint(kSafetensorsGoldens / "models" / directory);
    const WeightReader reader(*checkpoint);
    EXPECT_EQ(reader.file_name("embed_tokens.weight"), embedding);
    EXPECT_TRUE(reader.contains("norm.weight"));
    EXPECT_EQ(reader.shape_of("embed_tokens.weight"), (Extents{256, 32}));
  }
}

}  // namespace
}  // namespace paceline
