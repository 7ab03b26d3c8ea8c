// The sentence-transformers files of a model, and what is refused in them.
#include <gtest/gtest.h>

#include "load/embedding_files.h"
#include "load/score_head.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

constexpr const char* kFirstModules =
    R"({"path": "", "type": "sentence_transformers.models.Transformer"},
       {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"})";

struct Files {
  std::string modules = std::string("[") + kFirstModules + "]";
  std::string pooling = R"({"pooling_mode": "mean"})";
  std::string prompts = "{}";
  std::string sentence_bert = "{}";
  std::string config = R"({"model_type": "llama"})";
  std::string tokenizer = "{}";
  bool has_chat_template = false;
};

EmbeddingParts read(const Files& texts) {
  const ModelFiles files("a model",
                         {{"modules.json", [&] { return texts.modules; }},
                          {"1_Pooling/config.json", [&] { return texts.pooling; }},
                          {"config_sentence_transformers.json", [&] { return texts.prompts; }},
                          {"sentence_bert_config.json", [&] { return texts.sentence_bert; }},
                          {"tokenizer_config.json", [&] { return texts.tokenizer; }}});
  const Json config = parse_json(texts.config, "config.json");
  const auto backend = make_reference_backend();
  return read_embedding_parts({.files = files,
                               .config_json = config,
                               .hidden_size = 8,
                               .has_chat_template = texts.has_chat_template},
                              *backend);
}

std::string with_module(const std::string& path, const std::string& type) {
  return "[" + std::string(kFirstModules) + R"(, {"path": ")" + path +
         R"(", "type": "sentence_transformers.models.)" + type + R"("}])";
}

TEST(EmbeddingFiles, WithoutThemTheLastStateIsNormalised) {
  const ModelFiles none("a model", {});
  const Json config = parse_json(R"({"model_type": "qwen3"})", "config.json");
  const auto backend = make_reference_backend();
  const auto parts =
      read_embedding_parts({.files = none, .config_json = config, .hidden_size = 8}, *backend);
  EXPECT_EQ(parts.config.pooling, Pooling::last);
  EXPECT_TRUE(parts.config.normalises);
  EXPECT_EQ(parts.config.width, 8);
  EXPECT_FALSE(parts.config.is_matryoshka);
  EXPECT_TRUE(parts.head.empty());
}

TEST(EmbeddingFiles, PoolingModesOldAndNew) {
  EXPECT_EQ(read({}).config.pooling, Pooling::mean);
  EXPECT_FALSE(read({}).config.normalises);
  EXPECT_TRUE(read({.modules = with_module("2_Normalize", "Normalize")}).config.normalises);
  const std::pair<const char*, Pooling> old[] = {{"lasttoken", Pooling::last},
                                                 {"cls_token", Pooling::first},
                                                 {"mean_tokens", Pooling::mean},
                                                 {"weightedmean_tokens", Pooling::weighted_mean},
                                                 {"mean_sqrt_len_tokens", Pooling::mean_sqrt},
                                                 {"max_tokens", Pooling::max}};
  for (const auto& [name, pooling] : old) {
    const std::string flag = std::string(R"("pooling_mode_)") + name + R"(": true)";
    EXPECT_EQ(read({.pooling = R"({"word_embedding_dimension": 8, )" + flag + "}"}).config.pooling,
              pooling);
  }
}

TEST(EmbeddingFiles, PromptsAndDimensions) {
  const Files files{.prompts = R"({"prompts": {"query": "Q: ", "document": ""},
                                  "default_prompt_name": "query"})",
                    .config = R"({"matryoshka_dimensions": [2, 4]})"};
  const EmbeddingConfig config = read(files).config;
  ASSERT_EQ(config.prompts.size(), 2u);
  EXPECT_EQ(read({}).config.prompts,
            (std::vector<std::pair<std::string, std::string>>{{"query", ""}, {"document", ""}}));
  EXPECT_EQ(config.prompts[0], (std::pair<std::string, std::string>("query", "Q: ")));
  EXPECT_EQ(config.default_prompt, "query");
  EXPECT_TRUE(config.is_matryoshka);
  EXPECT_EQ(config.dimensions, (std::vector<int64_t>{2, 4}));
  EXPECT_FALSE(read({}).config.is_matryoshka);
  EXPECT_TRUE(read({.config = R"({"is_matryoshka": true})"}).config.is_matryoshka);
  EXPECT_TRUE(read({.config = R"({"model_type": "qwen3"})"}).config.is_matryoshka);
  const std::string refused = R"({"model_type": "qwen3", "is_matryoshka": false})";
  EXPECT_FALSE(read({.config = refused}).config.is_matryoshka);
}

TEST(EmbeddingFiles, TextsAreCutAtTheLengthThatAFileStates) {
  const auto length = [](const Files& files) {
    const auto cut = read(files).config.cut;
    return cut ? cut->max_tokens : 0;
  };
  const std::string config = R"({"model_type": "llama", "max_position_embeddings": 40})";
  EXPECT_EQ(length({}), 0);
  EXPECT_EQ(length({.config = config}), 40);
  EXPECT_EQ(length({.config = config, .tokenizer = R"({"model_max_length": 30})"}), 30);
  EXPECT_EQ(length({.config = config, .tokenizer = R"({"model_max_length": 50})"}), 40);
  EXPECT_EQ(length({.config = config, .tokenizer = R"({"model_max_length": 1e30})"}), 40);
  EXPECT_EQ(length({.sentence_bert = R"({"max_seq_length": 50})", .config = config}), 50);
  EXPECT_EQ(length({.sentence_bert = R"({"max_seq_length": 50, "processing_kwargs":
                                         {"text": {"max_length": 20}}})"}),
            20);
  EXPECT_EQ(length({.sentence_bert = R"({"max_seq_length": 50, "processing_kwargs":
                                         {"text": {"truncation": false}}})"}),
            0);
  EXPECT_EQ(read({.pooling = R"({"pooling_mode": ["max"]})"}).config.pooling, Pooling::max);
}

TEST(EmbeddingFiles, RefusesByFileAndField) {
  struct Refusal {
    Files files;
    ErrorCode code;
    std::vector<std::string> words;
  };
  const Refusal refusals[] = {
      {{.modules = "{}"}, ErrorCode::invalid, {"modules.json", "array"}},
      {{.modules = with_module("2", "LSTM")}, ErrorCode::unsupported, {"[2].type", "LSTM"}},
      {{.modules = with_module("../up", "Dense")}, ErrorCode::invalid, {"[2].path", "leads"}},
      {{.modules = with_module("/up", "Dense")}, ErrorCode::invalid, {"[2].path", "leads"}},
      {{.modules = with_module("0_T", "Transformer")}, ErrorCode::unsupported, {"[2].type", "0_T"}},
      {{.modules = R"([{"path": "", "type": "my_module.Transformer"}])"},
       ErrorCode::unsupported,
       {"[0].type", "my_module.Transformer", "sentence-transformers"}},
      {{.modules = R"([{"path": "", "type": "sentence_transformers.models.Pooling"}])"},
       ErrorCode::unsupported,
       {"[0].type", "Pooling", "Transformer"}},
      {{.modules = R"([{"path": "", "type": "sentence_transformers.models.Transformer"}])"},
       ErrorCode::invalid,
       {"no Pooling"}},
      {{.modules = R"([{"path": "", "type": "x", "revision": "a"}])"},
       ErrorCode::invalid,
       {"modules.json", "[0]", "unknown field revision"}},
      {{.modules = with_module("1_Pooling", "Pooling")},
       ErrorCode::unsupported,
       {"[2].type", "second Pooling"}},
      {{.modules =
            R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                {"path": "1_Dense", "type": "sentence_transformers.models.Dense"}])"},
       ErrorCode::unsupported,
       {"[1].type", "before Pooling"}},
      {{.pooling = R"({"pooling_mode": "mean", "word_embedding_dimension": 9})"},
       ErrorCode::invalid,
       {"1_Pooling/config.json", "word_embedding_dimension", "9", "8"}},
      {{.pooling = R"({"pooling_mode": "mean", "p": 3})"},
       ErrorCode::invalid,
       {"1_Pooling/config.json", "unknown field p"}},
      {{.pooling = R"({"pooling_mode": ["cls", "mean"]})"}, ErrorCode::unsupported, {"lasttoken"}},
      {{.pooling = R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})"},
       ErrorCode::unsupported,
       {"pooling_mode_mean_tokens", "second"}},
      {{.prompts = R"({"default_prompt_name": "q"})"}, ErrorCode::invalid, {"default_prompt_name"}},
      {{.prompts = R"({"prompts": {"q": 1}})"}, ErrorCode::invalid, {"prompts", "string"}},
      {{.sentence_bert = R"({"query_length": 32})"}, ErrorCode::unsupported, {"query_length"}},
      {{.prompts = R"({"model_type": "SparseEncoder"})"},
       ErrorCode::unsupported,
       {"config_sentence_transformers.json", "model_type", "SparseEncoder"}},
      {{.prompts = R"({"similarity_fn_name": "maxsim"})"},
       ErrorCode::unsupported,
       {"similarity_fn_name", "maxsim"}},
      {{.prompts = R"({"scale": 2})"}, ErrorCode::invalid, {"unknown field scale"}},
      {{.sentence_bert = R"({"pad_to": 2})"},
       ErrorCode::invalid,
       {"sentence_bert_config.json", "unknown field pad_to"}},
      {{.sentence_bert = R"({"transformer_task": "fill-mask"})"},
       ErrorCode::unsupported,
       {"transformer_task", "fill-mask"}},
      {{.sentence_bert = R"({"query_length": 32})"}, ErrorCode::unsupported, {"query_length"}},
      {{.sentence_bert = R"({"model_kwargs": {"x": 1}})"},
       ErrorCode::unsupported,
       {"model_kwargs"}},
      {{.sentence_bert = R"({"modality_config": {"image": {}}})"},
       ErrorCode::unsupported,
       {"modality_config", "no text"}},
      {{.sentence_bert = R"({"modality_config": {"text": {"method": "get_text_features"}}})"},
       ErrorCode::unsupported,
       {"modality_config.text.method", "get_text_features"}},
      {{.sentence_bert = R"({"modality_config": {"text": {"method_output_name": "logits"}}})"},
       ErrorCode::unsupported,
       {"modality_config.text.method_output_name", "logits"}},
      {{.sentence_bert = R"({"modality_config": {"message": {"format": "auto"}}})"},
       ErrorCode::unsupported,
       {"modality_config.message.format", "auto"}},
      {{.sentence_bert = R"({"modality_config": {"message": {"format": "flat"}}})"},
       ErrorCode::invalid,
       {"modality_config.message", "chat template"}},
      {{.sentence_bert = R"({"processing_kwargs": {"text": {"add_special_tokens": false}}})"},
       ErrorCode::unsupported,
       {"processing_kwargs.text.add_special_tokens"}},
      {{.sentence_bert = R"({"processing_kwargs": {"text": {"max_length": 0}}})"},
       ErrorCode::invalid,
       {"processing_kwargs.text.max_length"}},
      {{.sentence_bert = R"({"modality_config": {"message": {"format": "flat"}},
                             "processing_kwargs": {"chat_template": {"chat_template": "x"}}})"},
       ErrorCode::unsupported,
       {"processing_kwargs.chat_template.chat_template"}},
      {{.sentence_bert = R"({"max_seq_length": -1})"}, ErrorCode::invalid, {"max_seq_length"}},
      {{.tokenizer = R"({"model_max_length": 9, "truncation_side": "both"})"},
       ErrorCode::unsupported,
       {"tokenizer_config.json", "truncation_side", "both"}},
      {{.config = R"({"matryoshka_dimensions": [9]})"}, ErrorCode::invalid, {"matryoshka", "8"}},
  };
  for (const Refusal& refusal : refusals) {
    expect_error(refusal.code, refusal.words, [&] { read(refusal.files); });
  }
}

SequenceLabels cross_encoder(const std::string& text, const std::string& model) {
  const ModelFiles files("a model", {{"sentence_bert_config.json", [&] { return text; }},
                                     {"config_sentence_transformers.json", [&] { return model; }}});
  SequenceLabels labels;
  read_cross_encoder(files, labels);
  return labels;
}

TEST(CrossEncoderFiles, SayHowPairsAreScored) {
  const std::string sigmoid = R"({"activation_fn": "torch.nn.modules.activation.Sigmoid"})";
  const std::string identity = R"({"activation_fn": "torch.nn.modules.linear.Identity"})";
  EXPECT_FALSE(cross_encoder("{}", sigmoid).pairs_are_logits);
  EXPECT_EQ(cross_encoder("{}", sigmoid).pair_problem, "");
  EXPECT_TRUE(cross_encoder("{}", identity).pairs_are_logits);
  EXPECT_EQ(cross_encoder("{}", R"({"activation_fn": "my.Act"})").pair_problem,
            "a model: config_sentence_transformers.json: activation_fn: found \"my.Act\", expected "
            "Sigmoid or Identity of torch.nn");
  EXPECT_EQ(cross_encoder("{}", R"({"default_prompt_name": "q"})").pair_problem,
            "a model: config_sentence_transformers.json: default_prompt_name: a prompt in front of "
            "pairs isn't supported");
  EXPECT_EQ(cross_encoder(R"({"modality_config": {"message": {}}})", sigmoid).pair_problem,
            "a model: sentence_bert_config.json: modality_config.message: pairs in a chat template "
            "aren't supported");
}

}  // namespace
}  // namespace paceline
