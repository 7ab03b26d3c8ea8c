// Configs of single architectures of GGUF files, and what their metadata holds of weights.
#include <cmath>
#include <memory>

#include "load/gguf_model.h"
#include "tests/load/gguf_config_fixture.h"

namespace paceline {
namespace {

using GgufFamily = GgufConfigTest;

TEST_F(GgufFamily, FalconHasOneNormOrTwoAndOneKeyHeadOrSeveral) {
  const DecoderConfig grouped = decoder(small_file("falcon"));
  EXPECT_EQ(grouped.family, "falcon");
  EXPECT_TRUE(grouped.parallel_block);
  EXPECT_FALSE(grouped.grouped_qkv);
  EXPECT_EQ(grouped.num_kv_heads, 2);
  EXPECT_EQ(grouped.intermediate_size, 64);
  EXPECT_EQ(grouped.norms.before_mlp, "");
  const DecoderConfig two = decoder(
      small_file("falcon").floats("blk.0.attn_norm_2.weight", {32}, std::vector<float>(32)));
  EXPECT_EQ(two.norms.before_attention, "ln_attn");
  EXPECT_EQ(two.norms.before_mlp, "input_layernorm");
  const DecoderConfig one = decoder(small_file("falcon", "attention.head_count_kv")
                                        .number("falcon.attention.head_count_kv", uint32_t{1}));
  EXPECT_EQ(one.num_kv_heads, 1);
}

TEST_F(GgufFamily, SigmoidsChooseTheExpertsOfDotsAndMiniMax) {
  for (const std::string name : {"dots1", "minimax-m2"}) {
    GgufWriter writer = small_file(name);
    writer.number(name + ".expert_count", uint32_t{6})
        .number(name + ".expert_used_count", uint32_t{2})
        .number(name + ".expert_feed_forward_length", uint32_t{64})
        .number(name + ".expert_shared_count", uint32_t{name == "dots1" ? 1u : 0u});
    const DecoderConfig config = decoder(writer);
    EXPECT_EQ(config.mixture->routing.score, ExpertScore::sigmoid) << name;
    EXPECT_EQ(config.mixture->routing.normalise, name != "dots1");
    EXPECT_EQ(config.mixture->expert_size, 64);
    EXPECT_EQ(windows_of(config), std::vector<int64_t>(6, 0));
  }
}

TEST_F(GgufFamily, MellumHasWindowsAndARopeForThem) {
  GgufWriter writer = small_file("mellum");
  writer.number("mellum.expert_count", uint32_t{6})
      .number("mellum.expert_used_count", uint32_t{2})
      .number("mellum.expert_feed_forward_length", uint32_t{24})
      .number("mellum.attention.sliding_window", uint32_t{16})
      .number("mellum.rope.freq_base", 5e5f)
      .number("mellum.rope.freq_base_swa", 1e4f);
  const DecoderConfig config = decoder(writer);
  EXPECT_EQ(windows_of(config), (std::vector<int64_t>{16, 16, 16, 0, 16, 16}));
  ASSERT_EQ(config.ropes.size(), 2u);
  EXPECT_EQ(config.ropes[1].theta, 1e4);
  EXPECT_FALSE(config.layers[0].is_mixture);  // no router
}

TEST_F(GgufFamily, NumbersOfLayersAreTensors) {
  const auto file_with = [&](std::vector<float> numbers) {
    GgufWriter writer = small_file("apertus");
    for (const std::string part : {"alpha_n", "alpha_p", "beta"}) {
      writer.numbers<float>("apertus.xielu." + part, numbers);
    }
    writer.number("apertus.xielu.eps", -1e-6f);
    return writer;
  };
  const auto open = [&](const GgufWriter& writer) {
    directory_.write("model.gguf", writer.file());
    const auto file = std::make_shared<const GgufFile>(directory_.path() / "model.gguf");
    return open_gguf_weights(file, memory_);
  };
  EXPECT_TRUE(decoder(file_with({1, 2, 3, 4, 5, 6})).xielu);
  const auto weights = open(file_with({1, 2, 3, 4, 5, 6}));
  const std::string act = "model.layers.4.mlp.act_fn.";
  EXPECT_EQ(weights->read(act + "alpha_n", {1}).elements<float>()[0], 5.0f);
  EXPECT_EQ(weights->read(act + "beta", {}).elements<float>()[0], 5.0f);
  EXPECT_EQ(weights->read(act + "eps", {}).elements<float>()[0], -1e-6f);
  expect_error(ErrorCode::corrupt, {"apertus.xielu.alpha_n", "5 numbers for 6 layers"}, [&] {
    open(file_with({1, 2, 3, 4, 5}));
  });
  expect_error(ErrorCode::corrupt, {"apertus.xielu.alpha_n", "finite"}, [&] {
    open(file_with({1, 2, NAN, 4, 5, 6}));
  });
  expect_error(ErrorCode::corrupt, {"apertus.xielu.alpha_n", "0 numbers"},
               [&] { open(small_file("apertus")); });
}

}  // namespace
}  // namespace paceline
