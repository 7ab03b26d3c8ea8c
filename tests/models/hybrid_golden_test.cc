// Models whose layers have states, against transformers: float32 logits within 1e-4, greedy tokens
// equal, on every ISA; and the same bits however a prompt is cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "tests/kernels/chosen_isa.h"
#include "tests/models/test_model.h"
#include "tests/test_directory.h"
#include "weights/safetensors_writer.h"

namespace paceline::testing {
namespace {

class HybridGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(HybridGolden, LogitsAndGreedyTokensAreTransformers) {
  const Golden golden = read_golden(GetParam(), "hybrids");
  std::vector<RunOptions> runs = {{.backend = BackendKind::reference}};
  for (const Isa isa : isas_to_run()) {
    runs.push_back({.backend = BackendKind::cpu, .isa = isa, .num_threads = 2});
  }
  for (const RunOptions& run : runs) {
    TestModel model(golden.directory, run);
    SCOPED_TRACE(std::string(model.backend().name()));
    EXPECT_LE(max_difference(model.logits(golden.prompt_ids), golden.logits), 1e-4f);
    EXPECT_EQ(
        model.scratch_used(),
        forward_scratch_bytes(model.config(), std::ssize(golden.prompt_ids), AdapterUse::none));
    EXPECT_EQ(model.greedy(golden.prompt_ids, std::ssize(golden.greedy_ids)), golden.greedy_ids);
  }
}

TEST_P(HybridGolden, BitsDontDependOnCuts) {
  const Golden golden = read_golden(GetParam(), "hybrids");
  for (const Isa isa : isas_to_run()) {
    TestModel model(golden.directory, {.backend = BackendKind::cpu, .isa = isa, .num_threads = 2});
    const std::vector<float> whole = model.logits(golden.prompt_ids);
    for (const int64_t chunk : {1, 3, 16, 29}) {
      EXPECT_EQ(model.logits(golden.prompt_ids, chunk), whole) << isa_name(isa) << ", " << chunk;
    }
  }
}

// Norms of 1 + w where transformers has w.
bool is_shifted_by_mlx(std::string_view name) {
  return name == "model.norm.weight" ||
         std::ranges::any_of(std::array{"input_layernorm.weight", "post_attention_layernorm.weight",
                                        "q_norm.weight", "k_norm.weight"},
                             [&](std::string_view end) { return name.ends_with(end); });
}

// What mlx-lm makes of the golden's tensors: convolutions [channels, taps, 1].
void write_as_mlx(const std::filesystem::path& golden, const std::filesystem::path& to) {
  const auto files = open_checkpoint(golden);
  SafetensorsWriter writer(to / "model.safetensors", "mlx");
  for (const CheckpointEntry& entry : files->entries()) {
    Extents shape = entry.shape;
    if (entry.name.ends_with("conv1d.weight")) shape = {shape[0], shape[2], 1};
    writer.add(entry.name, "F32", shape);
  }
  for (const CheckpointEntry& entry : files->entries()) {
    const Tensor stored = files->read(entry.name, entry.shape);
    const auto* const elements = stored.elements<float>();
    std::vector<float> values(elements, elements + stored.num_elements());
    if (is_shifted_by_mlx(entry.name)) {
      for (float& value : values) value += 1.0f;
    }
    writer.write(entry.name, std::as_bytes(std::span(values)));
  }
  writer.finish();
  std::filesystem::copy(golden / "config.json", to / "config.json");
}

TEST(HybridFiles, ThoseOfMlxAreTheSameModel) {
  for (const char* const name : {"qwen3_5_text", "qwen3_next_sparse_step"}) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(name, "hybrids");
    const TestDirectory directory;
    write_as_mlx(golden.directory, directory.path());
    TestModel as_published(golden.directory, {}), as_mlx(directory.path(), {});
    EXPECT_TRUE(
        same_bits(as_mlx.logits(golden.prompt_ids), as_published.logits(golden.prompt_ids)));
  }
}

std::string hybrid_test_name(const ::testing::TestParamInfo<std::string>& one) { return one.param; }

INSTANTIATE_TEST_SUITE_P(, HybridGolden, ::testing::ValuesIn(golden_names("hybrids")),
                         hybrid_test_name);

}  // namespace
}  // namespace paceline::testing
