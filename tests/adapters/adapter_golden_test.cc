// Adapters written by PEFT, mlx-lm and gguf-py, against what these libraries have in memory after
// reading them (tools/goldens/make_adapter_goldens.py).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/mlx_directory.h"
#include "adapters/peft_directory.h"
#include "base/mapped_file.h"
#include "base/model_files.h"
#include "tests/adapters/written_adapters.h"
#include "tests/source_path.h"
#include "weights/checkpoint.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

const std::filesystem::path kAdapterGoldens = source_path("tests/goldens/adapters");

std::string fnv1a_hash(std::span<const std::byte> bytes) {
  uint64_t value = 0xCBF29CE484222325;
  for (const std::byte b : bytes) value = (value ^ std::to_integer<uint64_t>(b)) * 0x100000001B3;
  return fmt::format("{:016x}", value);
}

// The names that this file uses; src/models has all of them.
std::optional<GgufModule> llama_module(const GgufMetadata& metadata, std::string_view tensor) {
  EXPECT_EQ(metadata.string("general.architecture"), "llama");
  const std::map<std::string, GgufModule, std::less<>> modules = {
      {"blk.1.attn_q.weight", {"layers.1.self_attn.q_proj", 4}},
      {"blk.1.attn_k.weight", {"layers.1.self_attn.k_proj", 2}},
      {"blk.1.ffn_down.weight", {"layers.1.mlp.down_proj", 0}}};
  const auto at = modules.find(tensor);
  if (at == modules.end()) return std::nullopt;
  return at->second;
}

class AdapterGolden : public testing::TestWithParam<std::string> {
 protected:
  AdapterGolden()
      : json_(parse_json(read_text_file(kAdapterGoldens / "golden.json", kMaxConfigBytes),
                         "golden.json")),
        golden_(*json_.find(GetParam())),
        checkpoint_(open_checkpoint(source_path("tests/goldens/models") + "/" +
                                    *golden_.find("model")->string())),
        weights_(*checkpoint_) {
    constexpr int64_t kLayers = 3;
    base_.num_layers = kLayers;
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      for (const std::string part :
           {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
            "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
        base_.modules.push_back(fmt::format("layers.{}.{}", layer, part));
      }
    }
    base_.size_of = [this](std::string_view module) -> std::optional<MatrixSize> {
      const auto shape = weights_.shape_of(std::string(module) + ".weight");
      if (!shape || shape->rank() != 2) return std::nullopt;
      return MatrixSize{(*shape)[0], (*shape)[1]};
    };
    base_.gguf_module = llama_module;
  }

  Json json_;
  const Json& golden_;
  std::unique_ptr<Checkpoint> checkpoint_;
  WeightReader weights_;
  AdapterBase base_;
  Memory memory_;
};

void expect_matrix(const Tensor& matrix, const Json& pair, const std::string& key) {
  const Json::Array& shape = *pair.find(key + "_shape")->array();
  EXPECT_EQ(matrix.shape(), (Extents{*shape[0].integer(), *shape[1].integer()}));
  EXPECT_EQ(fnv1a_hash(matrix.bytes()), *pair.find(key)->string());
}

TEST_P(AdapterGolden, PairsAreThoseOfTheLibrary) {
  const Adapter adapter = read_adapter(kAdapterGoldens / GetParam(), base_, memory_);
  const Json::Object& pairs = *golden_.find("pairs")->object();
  ASSERT_GE(pairs.size(), 3u);
  ASSERT_EQ(adapter.pairs().size(), pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [module, expected] = pairs[i];
    SCOPED_TRACE(module);
    const LoraPair& pair = adapter.pairs()[i];
    EXPECT_EQ(pair.module, module);
    EXPECT_EQ(pair.scale, static_cast<float>(*expected.find("scale")->number()));
    expect_matrix(pair.a.view, expected, "a");
    expect_matrix(pair.b.view, expected, "b");
  }
}

// Also through mlx-lm's format, where it can hold the adapter.
TEST_P(AdapterGolden, WrittenAndReadAgainIsTheSame) {
  const TestDirectory directory;
  const Adapter adapter = read_adapter(kAdapterGoldens / GetParam(), base_, memory_);
  write_peft_adapter(adapter, base_, directory.path() / "peft");
  const Adapter peft = read_adapter(directory.path() / "peft", base_, memory_);
  EXPECT_EQ(peft.digest(), adapter.digest());
  EXPECT_EQ(peft.base_name(), adapter.base_name());
  const bool differs = std::ranges::any_of(adapter.pairs(), [&](const LoraPair& pair) {
    return pair.rank() != adapter.pairs()[0].rank() || pair.scale != adapter.pairs()[0].scale;
  });
  EXPECT_EQ(differs, GetParam() == "peft_llama");
  if (differs) return;
  write_mlx_adapter(peft, base_, directory.path() / "mlx");
  EXPECT_EQ(read_adapter(directory.path() / "mlx", base_, memory_).digest(), adapter.digest());
}

INSTANTIATE_TEST_SUITE_P(Libraries, AdapterGolden,
                         testing::Values("peft_llama", "peft_llama_rslora", "peft_llama_layers",
                                         "peft_llama_head", "peft_gemma3", "mlx_llama",
                                         "llama.gguf"));

}  // namespace
}  // namespace paceline
