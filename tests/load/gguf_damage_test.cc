// Making a model's files from any GGUF file succeeds or throws an Error.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "load/gguf_model.h"
#include "models/family.h"
#include "paceline/tokenizer.h"
#include "tests/expect_error.h"
#include "tests/test_scale.h"
#include "tests/weights/gguf_writer.h"
#include "tests/weights/written_files.h"

namespace paceline {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;

// Has one of every key that is read.
std::string whole_file(const std::string& arch, bool pieces) {
  GgufWriter writer;
  writer.string("general.architecture", arch);
  for (const char* key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.head_count_kv", "attention.key_length",
        "rope.dimension_count", "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size",
        "ssm.group_count", "ssm.time_step_rank", "shortconv.l_cache"}) {
    writer.number(arch + "." + key, uint32_t{4});
  }
  if (arch.starts_with("gemma")) writer.number(arch + ".attention.sliding_window", uint32_t{4});
  for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base",
                          "rope.scaling.factor", "attention.scale", "attn_logit_softcapping"}) {
    writer.number(arch + "." + key, 0.5f);
  }
  writer.string(arch + ".rope.scaling.type", "linear");
  writer.numbers(arch + ".attention.sliding_window_pattern", std::vector<int32_t>{1, 0, 1, 0});
  writer.string("tokenizer.ggml.model", pieces ? "llama" : "gpt2");
  writer.strings("tokenizer.ggml.tokens", {"<s>", "</s>", "a", "b", "ab", "  ", "<0x41>", "aba"});
  writer.numbers("tokenizer.ggml.token_type", std::vector<int32_t>{3, 3, 1, 1, 1, 4, 6, 1});
  writer.numbers("tokenizer.ggml.scores", std::vector<float>{0, 0, -1, -2, -3, 0, 0, -4});
  writer.strings("tokenizer.ggml.merges", {"a b", "ab a"});
  writer.string("tokenizer.ggml.pre", "gpt-2").boolean("tokenizer.ggml.add_bos_token", true);
  for (const char* name : {"bos", "eos", "eot", "unknown", "padding"}) {
    writer.number(std::string("tokenizer.ggml.") + name + "_token_id", uint32_t{1});
  }
  writer.string("tokenizer.chat_template", "{{ messages[0].content }}");
  writer.floats("token_embd.weight", {8, 4}, std::vector<float>(32));
  writer.floats("blk.0.attn_q.weight", {16, 4}, std::vector<float>(64));
  return writer.file();
}

void read_everything(const std::filesystem::path& path) {
  const auto file = std::make_shared<const GgufFile>(path);
  const ModelFiles files = gguf_model_files(file);
  Memory memory;
  const auto attempt = [](auto&& body) { (void)thrown_error(body); };
  attempt([&] { files.read("generation_config.json", kMaxBytes); });
  attempt([&] { Tokenizer::load(files).encode("abab  <s>a", {.add_special = true}); });
  attempt([&] {
    const auto weights = open_gguf_weights(file, memory);
    const Json config = parse_json(files.read("config.json", kMaxBytes), "config.json");
    read_decoder_config(config, WeightReader(*weights), "config.json");
  });
}

TEST(GgufModelDamage, EndsInTextsOrInAnError) {
  const TestDirectory directory;
  std::mt19937 draw(7);
  for (const char* arch : {"llama", "qwen3", "gemma2", "gemma3", "qwen35", "lfm2"}) {
    for (const bool pieces : {false, true}) {
      const std::string whole = whole_file(arch, pieces);
      for (int round = 0; round < scaled(60, 6000); ++round) {
        std::string damaged = whole;
        for (uint32_t changes = 1 + draw() % 4; changes > 0; --changes) {
          change_byte(damaged, draw() % damaged.size(), static_cast<uint32_t>(draw()));
        }
        directory.write("model.gguf", damaged);
        (void)thrown_error([&] { read_everything(directory.path() / "model.gguf"); });
      }
    }
  }
}

TEST(GgufModelDamage, TheWholeFileIsRead) {
  const TestDirectory directory;
  directory.write("model.gguf", whole_file("gemma3", true));
  const auto file = std::make_shared<const GgufFile>(directory.path() / "model.gguf");
  const Tokenizer tokenizer = Tokenizer::load(gguf_model_files(file));
  EXPECT_EQ(tokenizer.encode("A", {.add_special = true}), (std::vector<TokenId>{1, 6}));
}

}  // namespace
}  // namespace paceline
