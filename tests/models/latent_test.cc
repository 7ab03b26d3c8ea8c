// Multi-head latent attention: kv_b_proj as one tensor of the files or as two is the same model,
// and bits don't depend on how a prompt is cut.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/kernels/chosen_isa.h"
#include "tests/models/test_model.h"
#include "tests/test_directory.h"
#include "weights/safetensors_writer.h"

namespace paceline::testing {
namespace {

constexpr int64_t kHeads = 4, kNope = 12, kValue = 10, kRank = 20;  // of deepseek_v3_yarn
constexpr std::string_view kJoined = "kv_b_proj.weight";

// The two tensors that kv_b_proj is: the keys' heads transposed, and the values'.
struct SplitHeads {
  std::vector<float> keys;    // [heads, rank, nope]
  std::vector<float> values;  // [heads, value, rank]

  explicit SplitHeads(const Tensor& joined) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const int64_t first = head * (kNope + kValue);
      for (int64_t r = 0; r < kRank; ++r) {
        for (int64_t n = 0; n < kNope; ++n) keys.push_back(joined.row<float>(first + n)[r]);
      }
      for (int64_t v = 0; v < kValue; ++v) {
        const float* const row = joined.row<float>(first + kNope + v);
        values.insert(values.end(), row, row + kRank);
      }
    }
  }
};

void write_split(const std::filesystem::path& golden, const std::filesystem::path& to,
                 const std::string& keys, const std::string& values) {
  const auto files = open_checkpoint(golden);
  SafetensorsWriter writer(to / "model.safetensors", "mlx");
  const auto stem_of = [](const std::string& name) {
    return name.substr(0, name.size() - kJoined.size());
  };
  for (const CheckpointEntry& entry : files->entries()) {
    if (!entry.name.ends_with(kJoined)) {
      writer.add(entry.name, "F32", entry.shape);
      continue;
    }
    writer.add(stem_of(entry.name) + keys, "F32", {kHeads, kRank, kNope});
    writer.add(stem_of(entry.name) + values, "F32", {kHeads, kValue, kRank});
  }
  for (const CheckpointEntry& entry : files->entries()) {
    const Tensor stored = files->read(entry.name, entry.shape);
    if (!entry.name.ends_with(kJoined)) {
      const auto* const elements = stored.elements<float>();
      writer.write(entry.name,
                   std::as_bytes(std::span(elements, static_cast<size_t>(stored.num_elements()))));
      continue;
    }
    const SplitHeads heads(stored);
    writer.write(stem_of(entry.name) + keys, std::as_bytes(std::span(heads.keys)));
    writer.write(stem_of(entry.name) + values, std::as_bytes(std::span(heads.values)));
  }
  writer.finish();
  std::filesystem::copy(golden / "config.json", to / "config.json");
}

TEST(LatentFiles, TwoTensorsAreTheSameModel) {
  const Golden golden = read_golden("deepseek_v3_yarn", "latents");
  TestModel joined(golden.directory, {});
  const std::vector<float> expected = joined.logits(golden.prompt_ids);
  for (const auto& [keys, values] : {std::pair{"k_b_proj.weight", "v_b_proj.weight"},
                                     {"embed_q.weight", "unembed_out.weight"}}) {
    SCOPED_TRACE(keys);
    const TestDirectory directory;
    write_split(golden.directory, directory.path(), keys, values);
    TestModel split(directory.path(), {});
    EXPECT_TRUE(same_bits(split.logits(golden.prompt_ids), expected));
  }
}

TEST(LatentFiles, BitsDontDependOnCutsInAnyTypeOfTheCache) {
  const Golden golden = read_golden("deepseek_v2_lite", "latents");
  for (const Isa isa : isas_to_run()) {
    for (const DType type : {DType::f32, DType::bf16, DType::i8}) {
      TestModel model(
          golden.directory,
          {.backend = BackendKind::cpu, .isa = isa, .num_threads = 2, .kv_dtype = type});
      const std::vector<float> whole = model.logits(golden.prompt_ids);
      for (const int64_t chunk : {1, 3, 29}) {
        EXPECT_EQ(model.logits(golden.prompt_ids, chunk), whole)
            << isa_name(isa) << ", " << dtype_name(type) << ", " << chunk;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::testing
