// Valid GGUF headers are parsed, and every contradiction is refused.
#include "weights/gguf_parse.h"

#include <limits>

#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"

namespace paceline {
namespace {

constexpr std::string_view kGgufFile = "model.gguf";
constexpr uint64_t kHuge = uint64_t{1} << 62;

GgufContents parse(std::string_view content) { return parse_gguf(as_bytes_of(content), kGgufFile); }

void expect_refused(ErrorCode code, const std::vector<std::string>& parts,
                    const std::string& content) {
  std::vector<std::string> all{std::string(kGgufFile) + ": "};
  all.insert(all.end(), parts.begin(), parts.end());
  expect_error(code, all, [&] { parse(content); });
}
void expect_corrupt(const std::vector<std::string>& parts, const std::string& content) {
  expect_refused(ErrorCode::corrupt, parts, content);
}
void expect_unsupported(const std::vector<std::string>& parts, const std::string& content) {
  expect_refused(ErrorCode::unsupported, parts, content);
}

GgufWriter one_tensor(const GgufWrittenTensor& tensor) { return GgufWriter().tensor(tensor); }

TEST(GgufParse, VersionsTwoAndThreeReadTheSame) {
  for (const uint32_t version : {2u, 3u}) {
    GgufWriter writer;
    writer.version = version;
    writer.string("general.architecture", "llama").floats("b", {2, 3}, {1, 2, 3, 4, 5, 6});
    writer.floats("a", {}, {7});
    const std::string file = writer.file();
    const GgufContents contents = parse(file);
    EXPECT_EQ(contents.metadata.string("general.architecture"), "llama");
    ASSERT_EQ(contents.tensors.size(), 2u);
    EXPECT_EQ(contents.tensors[0].name, "a");
    EXPECT_EQ(contents.tensors[0].extents.rank(), 0);
    EXPECT_EQ(contents.tensors[1].name, "b");
    EXPECT_EQ(contents.tensors[1].extents, (Extents{2, 3}));
    EXPECT_EQ(contents.tensors[1].bytes.size(), 24u);
  }
}

TEST(GgufParse, AFileOfMetadataAloneIsSound) {
  EXPECT_EQ(parse(GgufWriter().file()).tensors.size(), 0u);
  EXPECT_EQ(parse(GgufWriter().number("a", 1).file()).metadata.integer("a"), 1);
}

TEST(GgufParse, OtherFilesAreNamed) {
  expect_corrupt({"expected \"GGUF\" as the first bytes, found \"\""}, "");
  expect_corrupt({"found \"ggml\"", "not a GGUF file"}, "ggml and more");
  expect_corrupt({"Git LFS pointer"}, "version https://git-lfs.github.com/spec/v1\n");
}

TEST(GgufParse, OtherVersionsAndByteOrdersAreRefusedByName) {
  const auto of_version = [](uint32_t version) {
    GgufWriter writer;
    writer.version = version;
    return writer.file();
  };
  expect_unsupported({"GGUF version 1, only 2 and 3"}, of_version(1));
  expect_unsupported({"GGUF version 4, only 2 and 3"}, of_version(4));
  expect_unsupported({"GGUF version 0"}, of_version(0));
  expect_unsupported({"big-endian"}, of_version(0x03000000));
}

TEST(GgufParse, CountsBeyondTheLimitsAreRefused) {
  GgufWriter writer;
  writer.num_tensors = kMaxGgufTensors + 1;
  expect_corrupt({"65537 tensors, at most 65536"}, writer.file());
  writer.num_tensors = 0;
  writer.num_keys = std::numeric_limits<uint64_t>::max();
  expect_corrupt({"18446744073709551615 metadata keys, at most 65536"}, writer.file());
  writer.num_keys = 1;
  expect_corrupt({"metadata key 1 of 1", "truncated"}, writer.file());
}

TEST(GgufParse, LengthsAreCheckedBeforeTheyAreUsed) {
  const std::string long_key(kMaxGgufNameBytes + 1, 'k');
  expect_corrupt({"metadata key 1 of 1: a key of 1025 bytes, at most 1024"},
                 GgufWriter().number(long_key, 1).file());
  EXPECT_TRUE(parse(GgufWriter().number(long_key.substr(1), 1).file())
                  .metadata.contains(long_key.substr(1)));
  for (const uint64_t length : {kMaxGgufStringBytes + 1, kHuge, ~uint64_t{0}}) {
    expect_corrupt({"metadata \"s\": a string of " + std::to_string(length) + " bytes"},
                   GgufWriter().raw("s", GgufValueType::string, raw_bytes(length)).file());
    expect_corrupt({"metadata \"s\": a string of " + std::to_string(length) + " bytes"},
                   GgufWriter().array("s", GgufValueType::string, 1, raw_bytes(length)).file());
  }
  expect_corrupt({"metadata \"s\": 100 bytes are expected", "truncated"},
                 GgufWriter().raw("s", GgufValueType::string, raw_bytes(uint64_t{100})).file());
}

TEST(GgufParse, ArraysAreCheckedBeforeTheyAreRead) {
  for (const uint64_t count : {kMaxGgufArrayElements + 1, kHuge, ~uint64_t{0}}) {
    for (const auto type : {GgufValueType::uint8, GgufValueType::float64, GgufValueType::string}) {
      expect_corrupt({"metadata \"a\": an array of " + std::to_string(count) + " elements"},
                     GgufWriter().array("a", type, count, "").file());
    }
  }
  expect_corrupt({"metadata \"a\": 33554432 bytes are expected", "truncated"},
                 GgufWriter().array("a", GgufValueType::int64, kMaxGgufArrayElements, "").file());
  expect_unsupported({"metadata \"a\": an array of arrays"},
                     GgufWriter().array("a", GgufValueType::array, 1, "").file());
  expect_corrupt({"metadata \"a\": value type 13, expected 0 to 12"},
                 GgufWriter().array("a", static_cast<GgufValueType>(13), 1, "").file());
}

TEST(GgufParse, ValuesOfNoTypeAreRefused) {
  expect_corrupt({"metadata \"a\": value type 4294967295"},
                 GgufWriter().raw("a", static_cast<GgufValueType>(~0u), "").file());
  expect_corrupt({"metadata \"a\": a bool is 2, expected 0 or 1"},
                 GgufWriter().raw("a", GgufValueType::boolean, "\2").file());
  expect_corrupt({"metadata \"a\": a bool is 255"},
                 GgufWriter().array("a", GgufValueType::boolean, 3, "\1\1\xFF").file());
}

TEST(GgufParse, KeysAndNamesStandOnce) {
  expect_corrupt({"metadata \"a\": the key occurs twice"},
                 GgufWriter().number("a", 1).number("b", 1).string("a", "x").file());
  expect_corrupt(
      {"tensor \"t\": the name occurs twice"},
      GgufWriter().floats("t", {1}, {1}).floats("s", {1}, {1}).floats("t", {1}, {1}).file());
}

TEST(GgufParse, AlignmentIsAPowerOfTwoWithinBounds) {
  for (const uint32_t alignment : {8u, 64u, 4096u}) {
    GgufWriter writer;
    writer.alignment = alignment;
    writer.number("general.alignment", alignment).floats("a", {1}, {1}).floats("b", {1}, {2});
    const std::string file = writer.file();
    const GgufContents contents = parse(file);
    EXPECT_EQ(contents.tensors[1].bytes.data() - contents.tensors[0].bytes.data(), alignment);
  }
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 33u, 8192u, 0x80000000u, ~0u}) {
    expect_corrupt({"metadata \"general.alignment\": " + std::to_string(alignment) + ", expected"},
                   GgufWriter().number("general.alignment", alignment).file());
  }
  expect_corrupt({"metadata \"general.alignment\": -32, expected"},
                 GgufWriter().number("general.alignment", -32).file());
  expect_corrupt({"metadata \"general.alignment\": expected an integer, found string"},
                 GgufWriter().string("general.alignment", "32").file());
}

TEST(GgufParse, NamesAndDimensionsHaveBounds) {
  expect_corrupt({"tensor 1 of 1: a name of 1025 bytes, at most 1024"},
                 one_tensor({std::string(1025, 'n'), GgufType::f32, {1}, "1234"}).file());
  expect_corrupt({"tensor \"t\": 5 dimensions, at most 4"},
                 one_tensor({"t", GgufType::f32, {1, 1, 1, 1, 1}, "1234"}).file());
  expect_corrupt({"tensor \"t\": dimension 0 is 0, expected 1 to 2^63 - 1"},
                 one_tensor({"t", GgufType::f32, {2, 0}, ""}).file());
  expect_corrupt({"tensor \"t\": dimension 1 is 18446744073709551615"},
                 one_tensor({"t", GgufType::f32, {~uint64_t{0}, 1}, ""}).file());
}

// Products that wrap around to few bytes, or to none.
TEST(GgufParse, ProductsThatWrapAroundAreRefused) {
  const std::vector<std::vector<uint64_t>> shapes = {
      {kHuge, 4},
      {uint64_t{1} << 32, uint64_t{1} << 32},
      {uint64_t{1} << 16, uint64_t{1} << 16, uint64_t{1} << 16, uint64_t{1} << 16},
      {(uint64_t{1} << 63) - 32, 32},
      {kHuge}};
  for (const auto& shape : shapes) {
    for (const GgufType type : {GgufType::f32, GgufType::q8_0}) {
      expect_corrupt({"tensor \"t\": "},
                     one_tensor({"t", type, shape, std::string(64, 'x')}).file());
    }
  }
  expect_corrupt({"tensor \"t\": shape [4611686018427387904] needs 2^63 bytes or more"},
                 one_tensor({"t", GgufType::f32, {kHuge}, ""}).file());
}

TEST(GgufParse, RowsAreWholeBlocks) {
  expect_corrupt({"tensor \"t\": rows of 48 elements, but Q4_0 has blocks of 32"},
                 one_tensor({"t", GgufType::q4_0, {2, 48}, std::string(54, 'x')}).file());
  expect_corrupt({"rows of 128 elements, but Q4_K has blocks of 256"},
                 one_tensor({"t", GgufType::q4_k, {2, 128}, std::string(144, 'x')}).file());
}

TEST(GgufParse, TypesThatCantBeReadAreRefusedByName) {
  const std::vector<std::pair<uint32_t, std::string>> types = {
      {41, "Q1_0"}, {16, "IQ2_XXS"}, {9, "Q8_1"}, {26, "I32"}, {34, "TQ1_0"}, {4, "Q4_2"}};
  for (const auto& [number, name] : types) {
    expect_unsupported({"tensor \"t\": type " + name + " can't be read"},
                       one_tensor({"t", static_cast<GgufType>(number), {256}, ""}).file());
  }
  expect_corrupt({"tensor \"t\": the format has no tensor type 999"},
                 one_tensor({"t", static_cast<GgufType>(999), {256}, ""}).file());
}

// No view reaches outside the file.
TEST(GgufParse, TensorsLieInsideTheFile) {
  const std::string whole = GgufWriter().floats("a", {8}, std::vector<float>(8)).file();
  EXPECT_EQ(parse(whole).tensors.size(), 1u);
  expect_corrupt({"tensor \"a\": 32 bytes at 0 pass the file's 31 bytes of data; it is truncated"},
                 whole.substr(0, whole.size() - 1));
  for (const uint64_t offset : {uint64_t{32}, kHuge, ~uint64_t{0} - 31}) {
    expect_corrupt({"tensor \"a\": 32 bytes at " + std::to_string(offset) + " pass the file's"},
                   one_tensor({"a", GgufType::f32, {8}, std::string(32, 'x'), offset}).file());
  }
  expect_corrupt({"tensor \"a\": offset 8 isn't a multiple of the alignment 32"},
                 one_tensor({"a", GgufType::f32, {1}, std::string(32, 'x'), 8}).file());
}

TEST(GgufParse, TensorsDontOverlap) {
  const std::string bytes(64, 'x');
  expect_corrupt({"tensor \"b\": begins at 32 of the data, inside \"a\", which ends at 64"},
                 GgufWriter()
                     .tensor({"a", GgufType::f32, {16}, bytes})
                     .tensor({"b", GgufType::f32, {1}, bytes, 32})
                     .file());
  const std::string gap = GgufWriter()
                              .tensor({"a", GgufType::f32, {16}, bytes, 64})
                              .tensor({"b", GgufType::f32, {1}, bytes, 0})
                              .file();
  EXPECT_EQ(parse(gap).tensors.size(), 2u);
}

}  // namespace
}  // namespace paceline
