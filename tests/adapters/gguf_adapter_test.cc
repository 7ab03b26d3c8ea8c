// Adapters in GGUF files: what is read of them, and what is refused by name.
#include "adapters/gguf_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapters/expert_names.h"
#include "tests/adapters/written_adapters.h"
#include "tests/weights/gguf_writer.h"

namespace paceline {
namespace {

using testing::ElementsAre;

// Of architecture llama: queries with one head of eight rows, interleaved.
std::optional<GgufModule> small_gguf_module(const GgufMetadata& metadata, std::string_view tensor) {
  if (metadata.string("general.architecture") != "llama") {
    throw Error(ErrorCode::invalid, metadata.file() + ": another architecture");
  }
  if (tensor == "blk.0.attn_q.weight") return GgufModule{"layers.0.self_attn.q_proj", 1};
  if (tensor == "blk.0.attn_v.weight") return GgufModule{"layers.0.self_attn.v_proj", 0};
  if (tensor == "token_embd.weight") return GgufModule{"embed_tokens", 0};
  return std::nullopt;
}

GgufWriter adapter_head(std::string_view type = "adapter", std::string_view kind = "lora") {
  GgufWriter writer;
  writer.string("general.architecture", "llama").string("general.type", type);
  writer.string("adapter.type", kind);
  return writer;
}

std::vector<float> counted(uint64_t count, float first) {
  std::vector<float> values;
  for (uint64_t i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}

GgufWriter& add_query(GgufWriter& writer) {
  return writer.floats("blk.0.attn_q.weight.lora_a", {1, 4}, counted(4, 1))
      .floats("blk.0.attn_q.weight.lora_b", {8, 1}, {10, 14, 11, 15, 12, 16, 13, 17});
}

class GgufAdapter : public testing::Test {
 protected:
  GgufAdapter() { base_.gguf_module = small_gguf_module; }
  Adapter read(const GgufWriter& writer) {
    directory_.write("a.gguf", writer.file());
    return read_adapter(directory_.path() / "a.gguf", base_, memory_);
  }
  void expect_refused(ErrorCode code, const std::vector<std::string>& parts,
                      const GgufWriter& writer) {
    expect_error(code, parts, [&] { read(writer); });
    EXPECT_EQ(memory_.stats().active_bytes, 0u);
  }

  TestDirectory directory_;
  Memory memory_;
  AdapterBase base_ = small_base();
};

TEST_F(GgufAdapter, ReadsPairsAndUndoesTheRowOrder) {
  GgufWriter writer = adapter_head();
  writer.number("adapter.lora.alpha", 2.5f).string("general.base_model.0.name", "Some Model");
  add_query(writer);
  writer.floats("blk.0.attn_v.weight.lora_a", {2, 4}, counted(8, 1));
  writer.floats("blk.0.attn_v.weight.lora_b", {4, 2}, counted(8, 1));
  const Adapter adapter = read(writer);
  ASSERT_EQ(adapter.pairs().size(), 2u);
  const LoraPair& query = adapter.pairs()[0];
  EXPECT_EQ(query.module, "layers.0.self_attn.q_proj");
  EXPECT_EQ(query.scale, 2.5f);
  EXPECT_THAT(floats_of(query.a.view), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(floats_of(query.b.view), ElementsAre(10, 11, 12, 13, 14, 15, 16, 17));
  EXPECT_EQ(adapter.pairs()[1].scale, 1.25f);
  EXPECT_THAT(floats_of(adapter.pairs()[1].b.view), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(adapter.base_name(), "Some Model");
}

// Of a layer with three experts.
TEST_F(GgufAdapter, StacksOfExpertsAreReadAndCheckedAgainstTheBase) {
  base_.gguf_module = [](const GgufMetadata&,
                         std::string_view tensor) -> std::optional<GgufModule> {
    if (tensor != "blk.1.ffn_up_exps.weight") return std::nullopt;
    return GgufModule{.module = "layers.1.mlp.experts.up_proj", .is_stack = true};
  };
  base_.size_of = [](std::string_view module) -> std::optional<MatrixSize> {
    const auto layer = split_layer_module(module);
    const auto expert = layer ? split_expert_part(layer->part) : std::nullopt;
    if (!expert || expert->expert > 2) return std::nullopt;
    return MatrixSize{6, 4};
  };
  const auto stack = [](std::vector<uint64_t> a, std::vector<uint64_t> b) {
    const auto count = [](const std::vector<uint64_t>& extents) {
      uint64_t product = 1;
      for (const uint64_t extent : extents) product *= extent;
      return product;
    };
    GgufWriter writer = adapter_head();
    writer.floats("blk.1.ffn_up_exps.weight.lora_a", a, counted(count(a), 1));
    writer.floats("blk.1.ffn_up_exps.weight.lora_b", b, counted(count(b), 1));
    return writer;
  };
  {
    const Adapter adapter = read(stack({3, 1, 4}, {3, 6, 1}));
    ASSERT_EQ(adapter.pairs().size(), 3u);
    const LoraPair& last = *adapter.find("layers.1.mlp.experts.2.up_proj");
    EXPECT_THAT(floats_of(last.a.view), ElementsAre(9, 10, 11, 12));
    EXPECT_THAT(floats_of(last.b.view), ElementsAre(13, 14, 15, 16, 17, 18));
  }
  expect_refused(ErrorCode::corrupt, {"ffn_up_exps.weight.lora_a", "[4, 4]", "[experts, rank, in]"},
                 stack({4, 4}, {3, 6, 1}));
  expect_refused(ErrorCode::corrupt, {"ffn_up_exps.weight.lora_b", "[experts, out, rank]"},
                 stack({3, 1, 4}, {6, 1}));
  expect_refused(ErrorCode::invalid, {"lora_a", "2 experts", "the base model has more"},
                 stack({2, 1, 4}, {2, 6, 1}));
  expect_refused(ErrorCode::not_found, {"lora_a"}, stack({4, 1, 4}, {4, 6, 1}));
  expect_refused(ErrorCode::invalid, {"another model?"}, stack({3, 1, 5}, {3, 6, 1}));
}

TEST_F(GgufAdapter, AlphaZeroOrAbsentMeansScaleOne) {
  GgufWriter absent = adapter_head();
  EXPECT_EQ(read(add_query(absent)).pairs()[0].scale, 1);
  GgufWriter zero = adapter_head();
  zero.number("adapter.lora.alpha", 0.0f);
  EXPECT_EQ(read(add_query(zero)).pairs()[0].scale, 1);
}

TEST_F(GgufAdapter, OtherFilesAreRefusedByName) {
  GgufWriter model = adapter_head("model");
  expect_refused(ErrorCode::unsupported, {"a.gguf: general.type", "\"model\"", "\"adapter\""},
                 add_query(model));
  GgufWriter vector = adapter_head("adapter", "control_vector");
  expect_refused(ErrorCode::unsupported, {"adapter.type", "\"lora\""}, add_query(vector));
  GgufWriter without;
  without.string("general.architecture", "llama");
  expect_refused(ErrorCode::unsupported, {"general.type", "found nothing"}, add_query(without));
  GgufWriter activated = adapter_head();
  activated.numbers<uint32_t>("adapter.alora.invocation_tokens", {1, 2});
  expect_refused(ErrorCode::unsupported, {"adapter.alora.invocation_tokens"}, add_query(activated));
  GgufWriter infinite = adapter_head();
  infinite.number("adapter.lora.alpha", std::numeric_limits<float>::infinity());
  expect_refused(ErrorCode::invalid, {"adapter.lora.alpha", "finite"}, add_query(infinite));
  base_.gguf_module = nullptr;
  GgufWriter good = adapter_head();
  expect_refused(ErrorCode::unsupported, {"name the model"}, add_query(good));
}

TEST_F(GgufAdapter, OtherTensorsAreRefusedByName) {
  GgufWriter norm = adapter_head();
  norm.floats("blk.0.attn_norm.weight", {4}, counted(4, 1));
  expect_refused(ErrorCode::unsupported, {"blk.0.attn_norm.weight", "norms"}, add_query(norm));
  GgufWriter unknown = adapter_head();
  unknown.floats("blk.9.attn_q.weight.lora_a", {1, 4}, counted(4, 1));
  expect_refused(ErrorCode::not_found, {"\"blk.9.attn_q.weight\"", "base model lacks"},
                 add_query(unknown));
  GgufWriter embedding = adapter_head();
  embedding.floats("token_embd.weight.lora_a", {1, 4}, counted(4, 1));
  expect_refused(ErrorCode::unsupported, {"adapts the embedding"}, add_query(embedding));
  GgufWriter packed = adapter_head();
  packed.tensor({"blk.0.attn_q.weight.lora_a", GgufType::q4_0, {1, 32}, std::string(18, 'x')});
  expect_refused(ErrorCode::unsupported, {"type Q4_0", "Q8_0"}, packed);
}

TEST_F(GgufAdapter, PairsThatDontFitAreRefused) {
  GgufWriter partner = adapter_head();
  partner.floats("blk.0.attn_q.weight.lora_a", {1, 4}, counted(4, 1));
  expect_refused(ErrorCode::corrupt, {"has no partner"}, partner);
  GgufWriter odd = adapter_head();
  odd.floats("blk.0.attn_q.weight.lora_b", {7, 1}, counted(7, 1));
  expect_refused(ErrorCode::corrupt, {"heads of an even size"}, odd);
  GgufWriter wide = adapter_head();
  wide.floats("blk.0.attn_q.weight.lora_a", {1, 5}, counted(5, 1));
  wide.floats("blk.0.attn_q.weight.lora_b", {8, 1}, counted(8, 1));
  expect_refused(ErrorCode::invalid, {"[1, 5]", "expected [1, 4]"}, wide);
  GgufWriter bad = adapter_head();
  bad.floats("blk.0.attn_v.weight.lora_a", {1, 4},
             {1, 2, 3, std::numeric_limits<float>::quiet_NaN()});
  bad.floats("blk.0.attn_v.weight.lora_b", {4, 1}, counted(4, 1));
  expect_refused(ErrorCode::numerical, {"blk.0.attn_v.weight.lora_a", "NaN"}, bad);
  GgufWriter flat = adapter_head();
  flat.floats("blk.0.attn_v.weight.lora_a", {4}, counted(4, 1));
  expect_refused(ErrorCode::corrupt, {"two dimensions"}, flat);
}

}  // namespace
}  // namespace paceline
