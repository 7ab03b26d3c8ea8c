// The sentence-transformers files of a model, and what is refused in them.
#include <gtest/gtest.h>

#include "load/embedding_files.h"
#include "tests/expect_error.h"

namespace paceline {
namespace {

constexpr const char* kPoolingModule = R"({"path": "1_Pooling", "type": "x.Pooling"})";

struct Files {
  std::string modules = std::string("[") + kPoolingModule + "]";
  std::string pooling = R"({"pooling_mode": "mean"})";
  std::string prompts = "{}";
  std::string sentence_bert = "{}";
  std::string config = R"({"model_type": "llama"})";
};

EmbeddingParts read(const Files& texts) {
  const ModelFiles files("a model",
                         {{"modules.json", [&] { return texts.modules; }},
                          {"1_Pooling/config.json", [&] { return texts.pooling; }},
                          {"config_sentence_transformers.json", [&] { return texts.prompts; }},
                          {"sentence_bert_config.json", [&] { return texts.sentence_bert; }}});
  const Json config = parse_json(texts.config, "config.json");
  const auto backend = make_reference_backend();
  return read_embedding_parts({.files = files, .config_json = config, .hidden_size = 8}, *backend);
}

std::string with_module(const std::string& path, const std::string& type) {
  return "[" + std::string(kPoolingModule) + R"(, {"path": ")" + path + R"(", "type": ")" + type +
         R"("}])";
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
  EXPECT_TRUE(read({.modules = with_module("2_Normalize", "x.Normalize")}).config.normalises);
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

TEST(EmbeddingFiles, RefusesByFileAndField) {
  struct Refusal {
    Files files;
    ErrorCode code;
    std::vector<std::string> words;
  };
  const Refusal refusals[] = {
      {{.modules = "{}"}, ErrorCode::invalid, {"modules.json", "array"}},
      {{.modules = with_module("2", "x.LSTM")}, ErrorCode::unsupported, {"[1].type", "LSTM"}},
      {{.modules = with_module("../up", "x.Dense")}, ErrorCode::invalid, {"[1].path", "leads"}},
      {{.modules = with_module("/up", "x.Dense")}, ErrorCode::invalid, {"[1].path", "leads"}},
      {{.modules = with_module("0_T", "x.Transformer")}, ErrorCode::unsupported, {"0_T"}},
      {{.modules = R"([{"path": "", "type": "Normalize"}, )" + std::string(kPoolingModule) + "]"},
       ErrorCode::unsupported,
       {"[1].type", "after Normalize"}},
      {{.modules = R"([{"path": "", "type": "Transformer"}])"}, ErrorCode::invalid, {"no Pooling"}},
      {{.modules = with_module("1_Pooling", "x.Pooling")},
       ErrorCode::unsupported,
       {"[1].type", "second Pooling"}},
      {{.modules =
            R"([{"path": "2_Dense", "type": "Dense"}, )" + std::string(kPoolingModule) + "]"},
       ErrorCode::unsupported,
       {"[0].type", "before Pooling"}},
      {{.pooling = "{}"}, ErrorCode::invalid, {"1_Pooling/config.json", "no pooling mode"}},
      {{.pooling = R"({"pooling_mode": ["cls", "mean"]})"}, ErrorCode::unsupported, {"lasttoken"}},
      {{.pooling = R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})"},
       ErrorCode::unsupported,
       {"pooling_mode_mean_tokens", "second"}},
      {{.pooling = R"({"pooling_mode": "mean", "include_prompt": false})"},
       ErrorCode::unsupported,
       {"include_prompt"}},
      {{.prompts = R"({"default_prompt_name": "q"})"}, ErrorCode::invalid, {"default_prompt_name"}},
      {{.prompts = R"({"prompts": {"q": 1}})"}, ErrorCode::invalid, {"prompts", "string"}},
      {{.sentence_bert = R"({"do_lower_case": true})"}, ErrorCode::unsupported, {"do_lower_case"}},
      {{.config = R"({"matryoshka_dimensions": [9]})"}, ErrorCode::invalid, {"matryoshka", "8"}},
  };
  for (const Refusal& refusal : refusals) {
    expect_error(refusal.code, refusal.words, [&] { read(refusal.files); });
  }
}

}  // namespace
}  // namespace paceline
