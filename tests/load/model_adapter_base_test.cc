// The projections of a model: those of its checkpoint, and adapters that libraries trained on it.
#include "load/model_adapter_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/adapter_files.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "weights/weight_reader.h"

namespace paceline {
namespace {

ModelSource golden_source(const std::string& name) {
  return ModelSource(source_path("tests/goldens/models/" + name));
}

TEST(ModelAdapterBase, SizesAreThoseOfTheCheckpoint) {
  for (const std::string name :
       {"llama_plain", "qwen2_tied", "qwen3_tied", "mistral_window", "gemma2_even",
        "gemma3_language_model_prefix", "gemma3_text_pattern2", "smolvlm_text_model_prefix"}) {
    SCOPED_TRACE(name);
    const ModelSource source = golden_source(name);
    const AdapterBase base = read_adapter_base(source);
    Memory memory;
    const auto checkpoint = source.open_weights(memory);
    const WeightReader weights(*checkpoint);
    EXPECT_EQ(base.modules.size(), static_cast<size_t>(base.num_layers) * 7 + 1);
    for (const std::string& module : base.modules) {
      const auto size = base.size_of(module);
      ASSERT_TRUE(size) << module;
      const auto shape = weights.shape_of(module + ".weight");
      if (module == "lm_head" && !shape) continue;  // tied
      EXPECT_EQ(shape, (Extents{size->out, size->in})) << module;
    }
    EXPECT_FALSE(base.size_of("layers.99.mlp.up_proj"));
    EXPECT_FALSE(base.size_of("layers.0.mlp"));
    EXPECT_FALSE(base.size_of("embed_tokens"));
  }
}

TEST(ModelAdapterBase, PrefixesFollowTheModelsClass) {
  EXPECT_EQ(read_adapter_base(golden_source("llama_plain")).peft_prefixes.layers, "model.");
  for (const std::string name : {"gemma3_language_model_prefix", "gemma3_model_prefix"}) {
    const AdapterBase base = read_adapter_base(golden_source(name));
    EXPECT_EQ(base.peft_prefixes.layers, "model.language_model.");
    EXPECT_EQ(base.peft_prefixes.head, "");
    EXPECT_EQ(base.mlx_prefixes.layers, "language_model.model.");
    EXPECT_EQ(base.mlx_prefixes.head, "language_model.");
  }
}

TEST(ModelAdapterBase, AdaptersOfLibrariesFit) {
  const AdapterBase llama = read_adapter_base(golden_source("llama_plain"));
  const AdapterBase gemma = read_adapter_base(golden_source("gemma3_language_model_prefix"));
  Memory memory;
  const auto read = [&](const std::string& name, const AdapterBase& base) {
    return read_adapter(source_path("tests/goldens/adapters/" + name), base, memory);
  };
  for (const std::string name : {"peft_llama", "peft_llama_rslora", "peft_llama_layers",
                                 "peft_llama_head", "mlx_llama", "llama.gguf"}) {
    EXPECT_GE(read(name, llama).pairs().size(), 3u) << name;
  }
  EXPECT_EQ(read("peft_gemma3", gemma).pairs().size(), 4u);
  expect_error(ErrorCode::invalid, {"o_proj.lora_A", "expected [2, 32]", "another model?"},
               [&] { read("peft_gemma3", llama); });
  expect_error(ErrorCode::invalid, {"llama.gguf: general.architecture is \"llama\"", "gemma3"},
               [&] { read("llama.gguf", gemma); });
}

// In the file the rows of queries and keys are interleaved; the other pair's are not.
TEST(ModelAdapterBase, GgufModulesHaveTheModelsHeads) {
  const AdapterBase base = read_adapter_base(golden_source("llama_plain"));
  const GgufFile file(source_path("tests/goldens/adapters/llama.gguf"));
  const auto module = [&](std::string_view tensor) {
    return base.gguf_module(file.metadata(), tensor);
  };
  EXPECT_EQ(module("blk.1.attn_q.weight")->module, "layers.1.self_attn.q_proj");
  EXPECT_EQ(module("blk.1.attn_q.weight")->interleaved_heads, 4);
  EXPECT_EQ(module("blk.1.attn_k.weight")->interleaved_heads, 2);
  EXPECT_EQ(module("blk.1.attn_v.weight")->interleaved_heads, 0);
  EXPECT_EQ(module("output.weight")->module, "lm_head");
  EXPECT_FALSE(module("blk.1.attn_q.bias"));
}

}  // namespace
}  // namespace paceline
