#include "weights/weight_reader.h"

#include <set>

#include "tests/expect_error.h"
#include "tests/weights/written_files.h"

namespace paceline {
namespace {

// A checkpoint of one-element tensors with these names, and its reader.
class NamedCheckpoint {
 public:
  explicit NamedCheckpoint(const std::vector<std::string>& names) {
    std::vector<FileTensor> tensors;
    for (const std::string& name : names) {
      tensors.push_back({name, "F32", {1}, bytes_of<float>({1})});
    }
    directory_.write("model.safetensors", safetensors_file(tensors));
    checkpoint_ = open_checkpoint(directory_.path());
  }
  Checkpoint& operator*() { return *checkpoint_; }

 private:
  TestDirectory directory_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

TEST(WeightReader, FindsThePrefixOfTheDecoderAndOfTheHead) {
  struct Case {
    std::string prefix, head_prefix;
  };
  for (const auto& [prefix, head_prefix] :
       std::vector<Case>{{"model.", ""},
                         {"", ""},
                         {"language_model.model.", "language_model."},
                         {"language_model.model.", ""},
                         {"language_model.", "language_model."},
                         {"model.language_model.", ""},
                         {"model.text_model.", ""},
                         {"model.", "model."}}) {
    SCOPED_TRACE(prefix + " " + head_prefix);
    NamedCheckpoint checkpoint({prefix + "embed_tokens.weight", prefix + "layers.0.mlp.weight",
                                head_prefix + "lm_head.weight"});
    WeightReader reader(*checkpoint);
    EXPECT_EQ(reader.file_name("layers.0.mlp.weight"), prefix + "layers.0.mlp.weight");
    EXPECT_EQ(reader.file_name("lm_head.weight"), head_prefix + "lm_head.weight");
    for (const std::string name :
         {"embed_tokens.weight", "layers.0.mlp.weight", "lm_head.weight"}) {
      EXPECT_TRUE(reader.contains(name));
      EXPECT_EQ(reader.shape_of(name), Extents{1});
      EXPECT_EQ(reader.read(name, {1}).elements<float>()[0], 1.0f);
    }
    EXPECT_FALSE(reader.contains("norm.weight"));
    EXPECT_EQ(reader.shape_of("norm.weight"), std::nullopt);
    EXPECT_NO_THROW(reader.expect_all_read());
    reader.release("embed_tokens.weight");
    reader.release("norm.weight");
  }
}

TEST(WeightReader, NamesTheHeadAsTheFileWould) {
  NamedCheckpoint plain({"model.embed_tokens.weight"});
  EXPECT_EQ(WeightReader(*plain).file_name("lm_head.weight"), "lm_head.weight");
  EXPECT_FALSE(WeightReader(*plain).contains("lm_head.weight"));
  NamedCheckpoint nested({"language_model.model.embed_tokens.weight"});
  EXPECT_EQ(WeightReader(*nested).file_name("lm_head.weight"), "language_model.lm_head.weight");
}

TEST(WeightReader, FindsTheNamesOfEncoders) {
  for (const std::string prefix : {"", "bert.", "roberta.", "model."}) {
    SCOPED_TRACE(prefix);
    const std::string query = prefix + "encoder.layer.0.attention.self.query.weight";
    const std::string down = prefix + "encoder.layer.0.output.dense.bias";
    const std::string embedding = prefix + "embeddings.word_embeddings.weight";
    NamedCheckpoint checkpoint({query, down, embedding, prefix + "embeddings.LayerNorm.gamma",
                                prefix + "embeddings.position_ids", prefix + "pooler.dense.weight",
                                "cls.predictions.bias"});
    WeightReader reader(*checkpoint);
    EXPECT_EQ(reader.file_name("embed_tokens.weight"), embedding);
    EXPECT_EQ(reader.file_name("layers.0.self_attn.q_proj.weight"), query);
    EXPECT_EQ(reader.file_name("layers.0.mlp.down_proj.bias"), down);
    EXPECT_EQ(reader.file_name("layers.12.post_attention_layernorm.weight"),
              prefix + "encoder.layer.12.attention.output.LayerNorm.weight");
    EXPECT_EQ(reader.file_name("embed_norm.weight"), prefix + "embeddings.LayerNorm.gamma");
    for (const char* const name : {"embed_tokens.weight", "layers.0.self_attn.q_proj.weight",
                                   "layers.0.mlp.down_proj.bias", "embed_norm.weight"}) {
      reader.read(name, {1});
    }
    EXPECT_NO_THROW(reader.expect_all_read());
  }
  const std::string distilled = "distilbert.transformer.layer.0.attention.q_lin.weight";
  NamedCheckpoint checkpoint(
      {distilled, "distilbert.embeddings.word_embeddings.weight", "classifier.weight"});
  WeightReader reader(*checkpoint);
  EXPECT_EQ(reader.file_name("layers.0.self_attn.q_proj.weight"), distilled);
  EXPECT_EQ(reader.file_name("layers.0.post_feedforward_layernorm.bias"),
            "distilbert.transformer.layer.0.output_layer_norm.bias");
  reader.read("embed_tokens.weight", {1});
  reader.read("layers.0.self_attn.q_proj.weight", {1});
  expect_error(ErrorCode::corrupt, {"classifier.weight"}, [&] { reader.expect_all_read(); });
}

TEST(WeightReader, FindsAHeadOfLabelsOutsideTheTextModel) {
  for (const std::string decoder : {"model.", "language_model.model.", "model.language_model."}) {
    for (const std::string head : {"", "language_model."}) {
      NamedCheckpoint checkpoint({decoder + "embed_tokens.weight", head + "score.weight"});
      EXPECT_EQ(WeightReader(*checkpoint).file_name("score.weight"), head + "score.weight");
    }
  }
}

TEST(WeightReader, MissingAndMisshapenTensorsAreNamedAsInTheFile) {
  NamedCheckpoint checkpoint({"model.embed_tokens.weight"});
  WeightReader reader(*checkpoint);
  expect_error(ErrorCode::not_found, {"tensor \"model.norm.weight\"", "missing"},
               [&] { reader.read("norm.weight", {1}); });
  expect_error(ErrorCode::corrupt, {"tensor \"model.embed_tokens.weight\"", "[1]", "[4, 1]"}, [&] {
    reader.read("embed_tokens.weight", {4, 1});
  });
  // A refused read doesn't count.
  expect_error(ErrorCode::corrupt, {"\"model.embed_tokens.weight\""},
               [&] { reader.expect_all_read(); });
  // No embedding at all: the usual prefix is assumed for the message.
  NamedCheckpoint strange({"transformer.wte.weight"});
  expect_error(ErrorCode::not_found, {"tensor \"model.embed_tokens.weight\""},
               [&] { WeightReader(*strange).read("embed_tokens.weight", {1}); });
}

TEST(WeightReader, LeftOverTensorsAreNamedUpToEight) {
  std::vector<std::string> names = {"model.embed_tokens.weight"};
  NamedCheckpoint one({names[0], "model.extra"});
  WeightReader reader_of_one(*one);
  reader_of_one.read("embed_tokens.weight", {1});
  expect_error(ErrorCode::corrupt, {"a tensor that this model doesn't use: \"model.extra\""},
               [&] { reader_of_one.expect_all_read(); });

  for (int i = 0; i < 8; ++i) names.push_back("model.extra." + std::to_string(i));
  NamedCheckpoint eight(names);
  WeightReader reader_of_eight(*eight);
  reader_of_eight.read("embed_tokens.weight", {1});
  EXPECT_THAT(
      error_message(ErrorCode::corrupt, [&] { reader_of_eight.expect_all_read(); }),
      testing::AllOf(testing::HasSubstr("8 tensors"), testing::EndsWith("\"model.extra.7\"")));

  names.emplace_back("model.extra.8");
  names.emplace_back("model.extra.9");
  NamedCheckpoint ten(names);
  WeightReader reader_of_ten(*ten);
  reader_of_ten.read("embed_tokens.weight", {1});
  EXPECT_THAT(error_message(ErrorCode::corrupt, [&] { reader_of_ten.expect_all_read(); }),
              testing::AllOf(testing::HasSubstr("10 tensors"),
                             testing::EndsWith("\"model.extra.7\" and 2 more")));
}

TEST(WeightReader, AnUnreadHeadIsLeftOver) {
  NamedCheckpoint checkpoint({"model.embed_tokens.weight", "lm_head.weight"});
  WeightReader reader(*checkpoint);
  reader.read("embed_tokens.weight", {1});
  expect_error(ErrorCode::corrupt, {"\"lm_head.weight\""}, [&] { reader.expect_all_read(); });
}

TEST(WeightReader, WhatATextModelDoesNotNeedMayBeLeftOver) {
  NamedCheckpoint fine(
      {"language_model.model.embed_tokens.weight",
       "language_model.model.layers.0.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq",
       "vision_tower.vision_model.embeddings.weight", "vision_model.post_layernorm.bias",
       "multi_modal_projector.weight", "embed_vision.embedding.weight",
       "model.vision_tower.layers.0.weight", "model.multi_modal_projector.mm_soft_emb_norm.weight",
       "model.language_model.embed_vision.weight", "model.vision_model.embeddings.weight",
       "model.connector.modality_projection.proj.weight"});
  WeightReader reader(*fine);
  reader.read("embed_tokens.weight", {1});
  EXPECT_NO_THROW(reader.expect_all_read());
  for (const std::string name : {"model.layers.0.vision_tower.weight", "vision_towers.weight",
                                 "model.visionary", "inv_freq"}) {
    NamedCheckpoint checkpoint({"model.embed_tokens.weight", name});
    WeightReader strict(*checkpoint);
    strict.read("embed_tokens.weight", {1});
    expect_error(ErrorCode::corrupt, {"\"" + name + "\""}, [&] { strict.expect_all_read(); });
  }
}

TEST(WeightReader, ReadsDummyWeights) {
  Memory memory;
  const auto checkpoint = make_dummy_checkpoint(DType::bf16, 1, memory);
  WeightReader reader(*checkpoint);
  EXPECT_EQ(reader.file_name("norm.weight"), "model.norm.weight");
  EXPECT_FALSE(reader.contains("lm_head.weight"));
  EXPECT_TRUE(reader.contains("layers.0.input_layernorm.weight"));
  EXPECT_EQ(reader.read("embed_tokens.weight", {4, 2}).shape(), (Extents{4, 2}));
  EXPECT_NO_THROW(reader.expect_all_read());
}

}  // namespace
}  // namespace paceline
