#include "weights/shard_index.h"

#include "base/random.h"
#include "tests/test_scale.h"
#include "tests/weights/written_files.h"

namespace paceline {
namespace {

const std::string kShardFile = "model.safetensors.index.json";

void expect_corrupt(std::string_view json, std::vector<std::string> parts) {
  parts.push_back(kShardFile + ": ");
  SCOPED_TRACE(json);
  expect_error(ErrorCode::corrupt, parts,
               [&] { parse_shard_index(as_bytes_of(json), kShardFile); });
}

TEST(ShardIndex, IsReadSortedByTensor) {
  const std::string json =
      R"({"metadata":{"total_size":8},"weight_map":{"b":"two.safetensors","a":"one.safetensors"}})";
  const auto tensors = parse_shard_index(as_bytes_of(json), kShardFile);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[0].file, "one.safetensors");
  EXPECT_EQ(tensors[1].name, "b");
  EXPECT_EQ(tensors[1].file, "two.safetensors");
}

TEST(ShardIndex, IsAnObjectWithAWeightMap) {
  expect_corrupt("", {"not valid JSON: line 1, column 1: the text ends"});
  expect_corrupt("{", {"not valid JSON: line 1, column 2: the text ends"});
  expect_corrupt("[]", {"found an array, expected an object"});
  expect_corrupt("{}", {"weight_map: missing"});
  expect_corrupt(R"({"weight_map":[]})", {"weight_map: found an array, expected an object"});
  expect_corrupt(R"({"weight_map":{}})", {"weight_map: names no tensor"});
  expect_corrupt(R"({"weight_map":{"a":1}})",
                 {"weight_map[\"a\"]: found 1, expected the name of a file beside the index"});
}

TEST(ShardIndex, KeysStandOnce) {
  expect_corrupt(R"({"weight_map":{"a":"f"},"weight_map":{"a":"f"}})",
                 {"the key \"weight_map\" occurs twice"});
  expect_corrupt(R"({"weight_map":{"a":"f","b":"f","\u0061":"g"}})",
                 {"weight_map: the key \"a\" occurs twice"});
}

TEST(ShardIndex, IntegersHaveAtMost64Bits) {
  expect_corrupt(R"({"metadata":{"total_size":18446744073709551616},"weight_map":{"a":"f"}})",
                 {"metadata.total_size: found 18446744073709551616, expected an integer of at most "
                  "64 bits"});
}

TEST(ShardIndex, FilesLieBesideTheIndex) {
  for (const std::string name :
       {"", ".", "..", "../f", "sub/f", "/etc/passwd", "a..b", "f\\u0000"}) {
    expect_corrupt(
        R"({"weight_map":{"t":")" + name + R"("}})",
        {"weight_map[\"t\"]: found \"" + name, "expected the name of a file beside the index"});
  }
}

TEST(ShardIndex, DamageAnywhereReadsOrIsRefused) {
  const std::string whole =
      R"({"metadata":{"total_size":8},"weight_map":{"b":"two.safetensors","a":"one.safetensors"}})";
  auto reads = [](const std::string& json) {
    const std::vector<char> exact(json.begin(), json.end());
    try {
      parse_shard_index(as_bytes_of({exact.data(), exact.size()}), kShardFile);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
      EXPECT_THAT(error.what(), testing::StartsWith(kShardFile + ": "));
      return false;
    }
    return true;
  };
  for (size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(reads(whole.substr(0, size)));
  const auto num_cases = static_cast<uint64_t>(scaled(3'000, 300'000));
  for (uint64_t i = 0; i < num_cases; ++i) {
    const auto draw = philox4x32(5, i);
    std::string changed = whole;
    change_byte(changed, draw[0] % changed.size(), draw[1]);
    reads(changed);
  }
}

}  // namespace
}  // namespace paceline
