// Embeddings against sentence-transformers, in float32 (tools/goldens/make_embedding_goldens.py).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/json_cursor.h"
#include "base/mapped_file.h"
#include "paceline/llm.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr float kEmbeddingTolerance = 1e-5f;

std::string embedding_model(const std::string& name) {
  return source_path("tests/goldens/embeddings/" + name);
}

Json read_embedding_json(const std::string& name) {
  return parse_json(read_text_file(embedding_model(name), 1 << 20), name);
}

Json read_embeddings(const std::string& name) { return read_embedding_json(name + "/golden.json"); }

LoadOptions embedding_options(const std::string& path) {
  LoadOptions options;
  options.model = path;
  options.kv_cache_memory_bytes = 1 << 20;
  options.max_num_batched_tokens = 1024;  // for whole texts
  options.num_threads = 2;
  return options;
}

std::vector<float> floats_of(const JsonCursor& list) {
  std::vector<float> floats;
  for (const JsonCursor& one : list.items()) floats.push_back(static_cast<float>(one.number()));
  return floats;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class EmbeddingGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(EmbeddingGolden, IsSentenceTransformers) {
  const Json golden = read_embeddings(GetParam());
  const JsonCursor root(golden, "golden.json");
  LLM llm = LLM::load(embedding_options(embedding_model(GetParam())));
  for (const JsonCursor& one : root.at("cases").items()) {
    EmbedOptions options;
    if (const auto name = one.find("prompt_name")) options.named_prompt = name->string();
    if (const auto size = one.find("dimensions")) options.dimensions = size->integer();
    const Embedding found = llm.embed(one.at("text").string(), options);
    EXPECT_LE(largest_difference(found.values, floats_of(one.at("embedding"))), kEmbeddingTolerance)
        << one.at("text").string();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddingGolden,
                         ::testing::Values("qwen3", "gemma3", "gemma4", "qwen3_both_ways", "bert",
                                           "xlm_roberta", "distilbert", "modernbert", "nomic_bert",
                                           "gte", "eurobert", "mpnet", "deberta", "jina"));

// The config of published files, where transformers writes another one.
class PublishedConfigGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedConfigGolden, IsSentenceTransformers) {
  const Json golden = read_embeddings(GetParam());
  const JsonCursor published = JsonCursor(golden, "golden.json").at("published");
  const fs::path path =
      fs::path(::testing::TempDir()) / ("published_" + GetParam() + std::to_string(::getpid()));
  fs::remove_all(path);
  fs::copy(embedding_model(GetParam()), path, fs::copy_options::recursive);
  std::ofstream(path / "config.json") << published.at("config").string();
  LLM llm = LLM::load(embedding_options(path.string()));
  for (const JsonCursor& one : published.at("cases").items()) {
    if (one.find("prompt_name") || one.find("dimensions")) continue;
    const Embedding found = llm.embed(one.at("text").string());
    EXPECT_LE(largest_difference(found.values, floats_of(one.at("embedding"))), kEmbeddingTolerance)
        << one.at("text").string();
  }
  fs::remove_all(path);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedConfigGolden, ::testing::Values("nomic_bert", "gte"));

// Pairs whose second texts begin elsewhere are rows of one step.
TEST(EncoderPairs, HaveTheBitsOfOneAlone) {
  const std::vector<TextPair> pairs = {{"where is the sea", "The old house by the sea"},
                                       {"x", "step 1 of many and then step 2"},
                                       {"where is the sea", "no"},
                                       {"A long walk", "x"}};
  for (const char* const name : {"bert_pairs", "xlm_roberta_pairs", "nomic_bert_pairs",
                                 "deberta_pairs", "modernbert_pairs"}) {
    SCOPED_TRACE(name);
    LoadOptions options = embedding_options(embedding_model(name));
    LLM together = LLM::load(options);
    options.num_threads = 1;
    options.max_num_seqs = 1;
    LLM alone = LLM::load(options);
    const std::vector<float> scores = together.score_pairs(pairs).values;
    ASSERT_EQ(scores.size(), pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(scores[i], alone.score_pairs(std::span(&pairs[i], 1)).values[0]);
    }
  }
}

// Every field that changes what rows see changes the embedding of the long text.
TEST(EmbeddingFeaturesGolden, DirectionsAndWindowsMatter) {
  struct Change {
    const char* model;
    const char* from;
    const char* to;
  };
  const Change changes[] = {
      {"gemma3", R"("use_bidirectional_attention": true)",
       R"("use_bidirectional_attention": false)"},
      {"gemma3", R"("sliding_window": 24)", R"("sliding_window": 26)"},
      {"gemma4", R"("use_bidirectional_attention": "all")",
       R"("use_bidirectional_attention": null)"},
      {"gemma4", R"("sliding_window": 24)", R"("sliding_window": 26)"},
      {"qwen3_both_ways", R"("is_causal": false)", R"("is_causal": true)"},
      {"qwen3_both_ways", R"("sliding_window": 12)", R"("sliding_window": 11)"},
      {"modernbert", R"("local_attention": 11)", R"("local_attention": 9)"}};
  const fs::path path =
      fs::path(::testing::TempDir()) / ("both_ways_" + std::to_string(::getpid()));
  for (const Change& change : changes) {
    SCOPED_TRACE(change.to);
    const Json golden = read_embeddings(change.model);
    const JsonCursor longest = JsonCursor(golden, "golden.json").at("cases").item(2);
    fs::remove_all(path);
    fs::copy(embedding_model(change.model), path, fs::copy_options::recursive);
    std::string config = read_text_file((path / "config.json").string(), 1 << 20);
    const size_t at = config.find(change.from);
    ASSERT_NE(at, config.npos);
    std::ofstream(path / "config.json")
        << config.replace(at, std::string(change.from).size(), change.to);
    LLM llm = LLM::load(embedding_options(path.string()));
    const Embedding found = llm.embed(longest.at("text").string());
    EXPECT_GT(largest_difference(found.values, floats_of(longest.at("embedding"))),
              100 * kEmbeddingTolerance);
  }
  fs::remove_all(path);
}

// A copy of the model whose states are pooled in another way, and not normalised.
class PooledCopy {
 public:
  explicit PooledCopy(const std::string& mode) {
    fs::remove_all(path_);
    fs::copy(embedding_model("qwen3"), path_, fs::copy_options::recursive);
    std::ofstream(path_ / "1_Pooling/config.json") << R"({"pooling_mode": ")" << mode << R"("})";
    std::ofstream(path_ / "modules.json")
        << R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
               {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";
  }
  ~PooledCopy() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_ = fs::path(::testing::TempDir()) / ("pooled_" + std::to_string(::getpid()));
};

TEST(EmbeddingPoolingGolden, EveryModeIsSentenceTransformers) {
  const Json golden = read_embeddings("qwen3");
  const JsonCursor root(golden, "golden.json");
  const std::string text = root.at("pooled_text").string();
  std::vector<std::vector<float>> found;
  for (const auto& [mode, embedding] : root.at("poolings").members()) {
    const PooledCopy copy{std::string(mode)};
    LLM llm = LLM::load(embedding_options(copy.path()));
    const auto expected = floats_of(root.at("poolings").at(mode));
    found.push_back(llm.embed(text).values);
    float largest = 1;
    for (const float element : expected) largest = std::max(largest, std::abs(element));
    EXPECT_LE(largest_difference(found.back(), expected), kEmbeddingTolerance * largest) << mode;
    for (size_t i = 0; i + 1 < found.size(); ++i) {
      EXPECT_GT(largest_difference(found[i], found.back()), 0.01f) << mode;
    }
  }
  EXPECT_EQ(found.size(), 6u);
}

// A copy of the model with other files.
class VariantCopy {
 public:
  explicit VariantCopy(const JsonCursor& files) {
    fs::remove_all(path_);
    fs::copy(embedding_model("qwen3"), path_, fs::copy_options::recursive);
    for (const auto& [name, node] : files.members()) {
      const JsonCursor text = files.entry(name, node);
      fs::remove(path_ / name);
      if (!text.is_null()) std::ofstream(path_ / name) << text.string();
    }
  }
  ~VariantCopy() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_ = fs::path(::testing::TempDir()) / ("variant_" + std::to_string(::getpid()));
};

// Chat templates, lengths, prompts that aren't pooled, similarities: as the package saves them.
TEST(EmbeddingVariantsGolden, EveryFileThatThePackageWritesIsObeyed) {
  const Json golden = read_embedding_json("variants.json");
  const JsonCursor variants(golden, "variants.json");
  EXPECT_GE(variants.num_items(), 20u);
  for (const JsonCursor& variant : variants.items()) {
    SCOPED_TRACE(variant.at("name").string());
    const VariantCopy copy(variant.at("files"));
    LLM llm = LLM::load(embedding_options(copy.path()));
    for (const JsonCursor& one : variant.at("cases").items()) {
      EmbedOptions options;
      if (const auto name = one.find("prompt_name")) options.named_prompt = name->string();
      const std::vector<float> found = llm.embed(one.at("text").string(), options).values;
      const std::vector<float> expected = floats_of(one.at("embedding"));
      float largest = 1;
      for (const float element : expected) largest = std::max(largest, std::abs(element));
      EXPECT_LE(largest_difference(found, expected), kEmbeddingTolerance * largest)
          << one.at("text").string();
    }
    for (const JsonCursor& pair : variant.at("pairs").items()) {
      const TextPair texts{.first = pair.at("texts").item(0).string(),
                           .second = pair.at("texts").item(1).string()};
      const auto score = static_cast<float>(pair.at("score").number());
      EXPECT_NEAR(llm.score_pairs(std::span(&texts, 1)).values[0], score,
                  kEmbeddingTolerance * std::max(1.0f, std::abs(score)));
    }
  }
}

}  // namespace
}  // namespace paceline
