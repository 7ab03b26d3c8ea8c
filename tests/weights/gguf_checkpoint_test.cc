// GGUF files on disk: split models, and tensors under Hugging Face's names.
#include "weights/gguf_checkpoint.h"

#include <numeric>

#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"
#include "weights/gguf_rows.h"

namespace paceline {
namespace {

std::vector<float> counted(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

struct OnDisk {
  explicit OnDisk(const GgufWriter& writer) {
    directory.write("m.gguf", writer.file());
    file = std::make_shared<const GgufFile>(directory.path() / "m.gguf");
  }
  std::unique_ptr<Checkpoint> named(std::vector<GgufTensorName> names) {
    return make_gguf_checkpoint(file, std::move(names), memory);
  }
  TestDirectory directory;
  Memory memory;
  std::shared_ptr<const GgufFile> file;
};

TEST(GgufCheckpoint, TensorsHaveTheNamesTheyAreGiven) {
  OnDisk disk(GgufWriter()
                  .floats("token_embd.weight", {2, 3}, counted(6))
                  .floats("output_norm.weight", {3}, {1, 2, 3})
                  .floats("rope_freqs.weight", {2}, {1, 1}));
  const auto checkpoint = disk.named({{"model.norm.weight", "output_norm.weight"},
                                      {"model.embed_tokens.weight", "token_embd.weight"}});
  EXPECT_EQ(checkpoint->origin(), disk.file->path().string());
  ASSERT_EQ(checkpoint->entries().size(), 2u);
  EXPECT_EQ(checkpoint->entries()[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(checkpoint->entries()[0].shape, (Extents{2, 3}));
  EXPECT_EQ(checkpoint->shape_of("model.norm.weight"), (Extents{3}));
  EXPECT_EQ(checkpoint->shape_of("rope_freqs.weight"), std::nullopt);
  EXPECT_FALSE(checkpoint->contains("token_embd.weight"));
  const Tensor embedding = checkpoint->read("model.embed_tokens.weight", {2, 3});
  EXPECT_EQ(embedding.raw(), disk.file->find_tensor("token_embd.weight")->bytes.data());
  EXPECT_EQ(embedding.elements<float>()[5], 5.0f);
  EXPECT_EQ(checkpoint->read_grouped("model.embed_tokens.weight", {2, 3}), nullptr);
  EXPECT_EQ(disk.memory.stats().active_bytes, 0u);
  checkpoint->release("model.embed_tokens.weight");
  EXPECT_EQ(embedding.elements<float>()[4], 4.0f);
}

TEST(GgufCheckpoint, WrongNamesAndShapesAreNamed) {
  OnDisk disk(GgufWriter().floats("a", {2, 3}, counted(6)).floats("b", {1}, {1}));
  const std::string path = disk.file->path().string();
  expect_error(ErrorCode::not_found, {path + ": tensor \"c\" is missing"}, [&] {
    disk.named({{"model.c", "c"}});
  });
  expect_error(ErrorCode::corrupt, {path, "tensor \"b\" and \"a\" both are \"x\""}, [&] {
    disk.named({{"x", "a"}, {"x", "b"}});
  });
  const auto checkpoint = disk.named({{"model.a", "a"}});
  expect_error(ErrorCode::not_found, {path, "\"model.b\"", "[1]", "is missing"},
               [&] { checkpoint->read("model.b", {1}); });
  for (const bool grouped : {false, true}) {
    expect_error(ErrorCode::corrupt, {path, "tensor \"a\" has shape [2, 3]", "need [3, 2]"}, [&] {
      if (grouped) checkpoint->read_grouped("model.a", {3, 2});
      checkpoint->read("model.a", {3, 2});
    });
  }
}

TEST(GgufCheckpoint, InterleavedHeadsComeApart) {
  OnDisk disk(GgufWriter().floats("q", {8, 1}, {0, 2, 1, 3, 4, 6, 5, 7}));
  const auto checkpoint = disk.named({{"q", "q", 2}});
  const Tensor q = checkpoint->read("q", {8, 1});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(q.elements<float>()[i], static_cast<float>(i));
  EXPECT_EQ(checkpoint->read("q", {8, 1}).raw(), q.raw());
  EXPECT_GT(disk.memory.stats().active_bytes, 0u);
  checkpoint->release("q");
  EXPECT_EQ(disk.memory.stats().active_bytes, 0u);
}

TEST(GgufCheckpoint, HeadsThatDontDivideTheRowsAreRefused) {
  OnDisk disk(GgufWriter().floats("q", {12, 1}, counted(12)).floats("scalar", {}, {1}));
  for (const int64_t heads : {int64_t{4}, int64_t{5}, int64_t{12}, int64_t{-1}, INT64_MAX}) {
    expect_error(ErrorCode::corrupt,
                 {"tensor \"q\" has shape [12, 1]", std::to_string(heads) + " heads"}, [&] {
                   disk.named({{"q", "q", heads}});
                 });
  }
  expect_error(ErrorCode::corrupt, {"tensor \"scalar\""}, [&] {
    disk.named({{"scalar", "scalar", 1}});
  });
}

// Scales of 1 (E4M3's 0x38), whose halves multiply twice the numbers: every element is 1.5.
std::string nvfp4_blocks(size_t count) {
  std::string block = std::string(4, '\x38') + std::string(32, '\x33');
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += block;
  return bytes;
}

TEST(GgufCheckpoint, SecondScalesMultiplyNvfp4) {
  OnDisk disk(GgufWriter()
                  .tensor({"up.weight", GgufType::nvfp4, {2, 64}, nvfp4_blocks(2)})
                  .floats("up.scale", {1}, {0.5f})
                  .tensor({"exps.weight", GgufType::nvfp4, {2, 3, 64}, nvfp4_blocks(6)})
                  .floats("exps.scale", {2}, {2.0f, -4.0f}));
  const auto checkpoint =
      disk.named({{.name = "up", .file_name = "up.weight", .multipliers = "up.scale"},
                  {.name = "exps", .file_name = "exps.weight", .multipliers = "exps.scale"}});
  EXPECT_EQ(checkpoint->read("up", {2, 64}).elements<float>()[65], 0.75f);
  const Tensor experts = checkpoint->read("exps", {2, 3, 64});
  EXPECT_EQ(experts.elements<float>()[3 * 64 - 1], 3.0f);
  EXPECT_EQ(experts.elements<float>()[3 * 64], -6.0f);
  const auto rows = checkpoint->read_grouped("exps", {2, 3, 64});
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->stored_bytes().size(), 2u);
  std::vector<uint8_t> codes(64);
  std::vector<float> scales(4), offsets(4);
  rows->read_codes(3, codes, scales, offsets);
  EXPECT_EQ(scales[3] * static_cast<float>(codes[63]) + offsets[3], -6.0f);
}

TEST(GgufCheckpoint, SecondScalesThatDontFitAreNamed) {
  OnDisk disk(GgufWriter()
                  .tensor({"up.weight", GgufType::nvfp4, {2, 64}, nvfp4_blocks(2)})
                  .floats("two", {2}, {1, 1})
                  .floats("scalar", {}, {1})
                  .floats("infinite", {1}, {INFINITY}));
  const auto open_with = [&](const std::string& scales) {
    disk.named({{.name = "up", .file_name = "up.weight", .multipliers = scales}});
  };
  expect_error(ErrorCode::corrupt, {"tensor \"two\" holds [2] of F32", "\"up.weight\" [2, 64]"},
               [&] { open_with("two"); });
  expect_error(ErrorCode::corrupt, {"tensor \"scalar\" holds []"}, [&] { open_with("scalar"); });
  expect_error(ErrorCode::corrupt, {"tensor \"infinite\" has a scale that isn't a finite number"},
               [&] { open_with("infinite"); });
  expect_error(ErrorCode::not_found, {"tensor \"none\" is missing"}, [&] { open_with("none"); });
}

TEST(GgufCheckpoint, NumbersOfTheMetadataAreTensors) {
  OnDisk disk(GgufWriter().floats("a", {1}, {1}));
  const auto checkpoint =
      disk.named({{.name = "vector", .file_name = {}, .number = 0.5f},
                  {"a", "a"},
                  {.name = "scalar", .file_name = {}, .number = -2.0f, .has_no_dimension = true}});
  EXPECT_EQ(checkpoint->read("vector", {1}).elements<float>()[0], 0.5f);
  EXPECT_EQ(checkpoint->read("scalar", {}).elements<float>()[0], -2.0f);
  EXPECT_EQ(checkpoint->read_grouped("scalar", {}), nullptr);
  checkpoint->release("scalar");
  EXPECT_EQ(checkpoint->shape_of("vector"), (Extents{1}));
  expect_error(ErrorCode::corrupt, {"tensor \"vector\" has shape [1]", "need [2]"},
               [&] { checkpoint->read("vector", {2}); });
  expect_error(ErrorCode::corrupt, {"\"a\" is both a tensor and a number"}, [&] {
    disk.named({{"a", "a"}, {.name = "a", .file_name = {}, .number = 1.0f}});
  });
}

// Two groups of two heads of two; the file has heads 0, 2, 1 and 3.
TEST(GgufCheckpoint, GroupsOfHeadsComeTogether) {
  const std::vector<float> in_file = {8, 0, 1, 4, 5, 2, 3, 6, 7};
  const std::vector<float> in_order = {8, 0, 1, 2, 3, 4, 5, 6, 7};
  OnDisk disk(GgufWriter()
                  .floats("rows", {9, 1}, in_file)
                  .floats("vector", {9}, in_file)
                  .floats("columns", {1, 9}, in_file));
  const GgufHeadGroups groups{.first = 1, .groups = 2, .heads = 4, .size = 2};
  const auto checkpoint =
      disk.named({{.name = "kernel", .file_name = "rows", .is_kernel = true, .row_groups = groups},
                  {.name = "vector", .file_name = "vector", .row_groups = groups},
                  {.name = "columns", .file_name = "columns", .column_groups = groups}});
  EXPECT_EQ(checkpoint->shape_of("kernel"), (Extents{9, 1, 1}));
  for (const char* name : {"kernel", "vector", "columns"}) {
    const Tensor read = checkpoint->read(name, *checkpoint->shape_of(name));
    EXPECT_EQ(std::vector<float>(read.elements<float>(), read.elements<float>() + 9), in_order)
        << name;
  }
  const GgufHeadGroups more{.groups = 2, .heads = 4, .size = 3};
  expect_error(ErrorCode::corrupt,
               {"tensor \"rows\" has shape [9, 1], whose rows aren't 4 heads of 3"},
               [&] { disk.named({{.name = "a", .file_name = "rows", .row_groups = more}}); });
  expect_error(ErrorCode::corrupt, {"tensor \"vector\" has shape [9], whose columns"}, [&] {
    disk.named({{.name = "a", .file_name = "vector", .column_groups = groups}});
  });
}

TEST(GgufCheckpoint, EveryHeadSizeIsAPermutation) {
  for (int64_t heads = 1; heads <= 4; ++heads) {
    for (int64_t half = 1; half <= 5; ++half) {
      const GgufRowOrder order(heads * 2 * half, heads);
      for (int64_t head = 0; head < heads; ++head) {
        for (int64_t i = 0; i < 2 * half; ++i) {
          const int64_t expected = head * 2 * half + 2 * (i % half) + i / half;
          EXPECT_EQ(order.in_file(head * 2 * half + i), expected) << heads << ", " << half;
        }
      }
    }
  }
}

// Shard `index` of `count`, with one tensor.
GgufWriter shard(int index, int count, const std::string& tensor) {
  return GgufWriter()
      .number("split.no", static_cast<uint16_t>(index))
      .number("split.count", static_cast<uint16_t>(count))
      .number("split.tensors.count", int32_t{2})
      .floats(tensor, {1}, {static_cast<float>(index)});
}

TEST(GgufCheckpoint, SplitModelsMustBelongTogether) {
  const TestDirectory directory;
  const std::string first = "m-00001-of-00002.gguf";
  const std::string second = "m-00002-of-00002.gguf";
  const auto open = [&](const std::string& name) { return GgufFile(directory.path() / name); };
  directory.write(first, shard(0, 2, "a").file());
  expect_error(ErrorCode::not_found, {second}, [&] { open(first); });
  directory.write(second, shard(1, 2, "b").file());
  EXPECT_EQ(open(first).tensors().size(), 2u);
  expect_error(ErrorCode::corrupt, {second, "open the first", "NAME-00001-of-00002.gguf"},
               [&] { open(second); });
  directory.write("renamed.gguf", shard(0, 2, "a").file());
  expect_error(ErrorCode::corrupt, {"renamed.gguf", "NAME-00001-of-00002.gguf"},
               [&] { open("renamed.gguf"); });
  directory.write(second, shard(1, 2, "a").file());
  expect_error(ErrorCode::corrupt, {first, "tensor \"a\" is in two files"}, [&] { open(first); });
  directory.write(second, shard(1, 3, "b").file());
  expect_error(ErrorCode::corrupt, {second, "are 1 and 3, expected 1 and 2"}, [&] { open(first); });
  directory.write(second, GgufWriter().floats("b", {1}, {1}).file());
  expect_error(ErrorCode::corrupt, {second, "are missing and missing, expected 1 and 2"},
               [&] { open(first); });
  directory.write(second, shard(1, 2, "b").floats("c", {1}, {1}).file());
  expect_error(ErrorCode::corrupt, {first, "\"split.tensors.count\" is 2", "have 3 tensors"},
               [&] { open(first); });
}

TEST(GgufCheckpoint, SplitCountsOutOfRangeAreRefused) {
  const TestDirectory directory;
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{100'000}, INT64_MAX}) {
    directory.write("m.gguf", GgufWriter().number("split.count", count).file());
    expect_error(ErrorCode::corrupt, {"\"split.count\" is " + std::to_string(count), "1 to 99999"},
                 [&] { GgufFile(directory.path() / "m.gguf"); });
  }
}

}  // namespace
}  // namespace paceline
