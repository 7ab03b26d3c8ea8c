// Embeddings have the same bits alone and beside everything else; their options and errors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "llm/request_pool.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// A copy of the golden model whose states are pooled in this way.
class PoolingModel {
 public:
  explicit PoolingModel(const std::string& mode) {
    fs::remove_all(path_);
    fs::copy(source_path("tests/goldens/embeddings/qwen3"), path_, fs::copy_options::recursive);
    std::ofstream(path_ / "1_Pooling/config.json") << R"({"pooling_mode": ")" << mode << R"("})";
  }
  ~PoolingModel() { fs::remove_all(path_); }

  LoadOptions options() const {
    LoadOptions options;
    options.model = path_.string();
    options.kv_cache_memory_bytes = 1 << 20;
    options.num_threads = 1;
    return options;
  }

 private:
  fs::path path_ = fs::path(::testing::TempDir()) / ("embedding_" + std::to_string(::getpid()));
};

std::vector<std::string> many_texts() {
  std::vector<std::string> texts;
  std::string text = "The sea, the old house, yes or no: ";
  for (int i = 0; i < 24; ++i) {
    texts.push_back(text.substr(static_cast<size_t>(i % 5)));
    text += std::string(static_cast<size_t>(i), static_cast<char>('a' + i));
  }
  return texts;
}

// Runs the texts at once beside generations, and compares with each alone.
void expect_same_beside(LLM& llm, const std::vector<std::string>& texts,
                        const std::vector<Embedding>& alone) {
  RequestPool pool(llm);
  GenerateOptions short_answer;
  short_answer.max_tokens = 9;
  short_answer.ignore_eos = true;
  for (size_t i = 0; i < texts.size(); ++i) {
    pool.embed(static_cast<int64_t>(i), texts[i], {});
    if (i % 3 == 0) pool.generate(1000, texts[i], short_answer);
  }
  size_t num_embeddings = 0;
  while (auto done = pool.next()) {
    if (done->tag == 1000) {
      EXPECT_EQ(std::get<std::vector<Completion>>(done->result)[0].token_ids.size(), 9u);
      continue;
    }
    ++num_embeddings;
    const auto index = static_cast<size_t>(done->tag);
    EXPECT_EQ(std::get<Embedding>(done->result).values, alone[index].values) << texts[index];
  }
  EXPECT_EQ(num_embeddings, texts.size());
}

TEST(Embedding, SameBitsAloneAndBesideEverything) {
  for (const char* const mode : {"lasttoken", "mean", "weightedmean"}) {
    SCOPED_TRACE(mode);
    const PoolingModel model(mode);
    const auto texts = many_texts();
    LLM reference = LLM::load(model.options());
    std::vector<Embedding> alone;
    for (const std::string& text : texts) alone.push_back(reference.embed(text));

    LoadOptions chunked = model.options();
    chunked.max_num_batched_tokens = 19;
    chunked.max_chunk = 7;
    chunked.num_threads = 2;
    LoadOptions cramped = model.options();
    cramped.block_size = 5;
    cramped.max_model_len = 400;
    cramped.kv_cache_memory_bytes = 85 * 5 * 2 * 2 * 32 * 4;  // for one text of the longest
    LoadOptions uncached = model.options();
    uncached.prefix_caching = false;
    for (const LoadOptions& options : {chunked, cramped, uncached}) {
      LLM llm = LLM::load(options);
      expect_same_beside(llm, texts, alone);
      expect_same_beside(llm, texts, alone);  // the prefix cache is warm
    }
  }
}

TEST(Embedding, BothWaysSameBitsAloneAndTogether) {
  LoadOptions options;
  options.model = source_path("tests/goldens/embeddings/gemma3");
  options.kv_cache_memory_bytes = 1 << 20;
  options.max_num_batched_tokens = 700;
  options.num_threads = 1;
  const auto texts = many_texts();
  LLM reference = LLM::load(options);
  std::vector<Embedding> alone;
  for (const std::string& text : texts) alone.push_back(reference.embed(text));
  options.num_threads = 3;
  options.max_chunk = 5;
  options.block_size = 7;
  LLM llm = LLM::load(options);
  const std::vector<Prompt> prompts(texts.begin(), texts.end());
  const auto together = llm.embed(prompts);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(std::get<Embedding>(together[i]).values, alone[i].values) << texts[i];
  }
  expect_error(ErrorCode::unsupported, {"both directions"},
               [&] { llm.generate("x", {}).completion(); });
  expect_error(ErrorCode::unsupported, {"both directions"}, [&] { llm.score("x", {}); });
  expect_error(ErrorCode::unsupported, {"both directions"}, [&] {
    llm.classify("x", {.labels = {"a", "b"}});
  });
}

TEST(Embedding, ReportsUsageAndCachedTokens) {
  const PoolingModel model("lasttoken");
  LLM llm = LLM::load(model.options());
  const std::string text(100, 'x');
  EXPECT_EQ(llm.embed(text).usage.prompt_tokens, 101);
  EXPECT_EQ(llm.embed(text).usage.cached_tokens, 96);
  EXPECT_EQ(llm.metrics().prompt_tokens, 101);
  EXPECT_EQ(llm.metrics().cached_tokens, 96);
}

TEST(Embedding, ManyAtOnceFailAlone) {
  const PoolingModel model("mean");
  LLM llm = LLM::load(model.options());
  const Prompt prompts[] = {"good", std::vector<int32_t>{}, std::vector<int32_t>{5, 6, 7}};
  const auto results = llm.embed(prompts);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(std::get<Embedding>(results[0]).values, llm.embed("good").values);
  EXPECT_EQ(std::get<ErrorInfo>(results[1]).code, ErrorCode::invalid);
  EXPECT_EQ(std::get<Embedding>(results[2]).values.size(), 32u);
}

TEST(Embedding, RefusesByName) {
  const PoolingModel model("mean");
  LLM llm = LLM::load(model.options());
  const auto embed = [&](const Prompt& prompt, const EmbedOptions& options) {
    return [&llm, prompt, options] { llm.embed(prompt, options); };
  };
  for (const int64_t size : {0, 33, -1}) {
    expect_error(ErrorCode::invalid, {"dimensions", "1 to 32"}, embed("x", {.dimensions = size}));
  }
  expect_error(ErrorCode::invalid, {"prompt_name", "\"title\"", "document, query"},
               embed("x", {.named_prompt = "title"}));
  expect_error(ErrorCode::invalid, {"prompt_name", "token ids"},
               embed(std::vector<int32_t>{1}, {.named_prompt = "query"}));
  expect_error(ErrorCode::not_found, {"lora"}, embed("x", {.lora = "none"}));

  LoadOptions plain = model.options();
  plain.model = source_path("tests/goldens/models/llama_plain");
  LLM other = LLM::load(plain);
  expect_error(ErrorCode::invalid, {"dimensions", "is_matryoshka"}, [&] {
    other.embed(std::vector<int32_t>{1, 2}, {.dimensions = 8});
  });
}

TEST(Embedding, ACancelledOneEndsWithAnError) {
  const PoolingModel model("mean");
  LLM llm = LLM::load(model.options());
  std::stop_source stop;
  stop.request_stop();
  expect_error(ErrorCode::cancelled, {"cancelled"},
               [&] { llm.embed("x", {.cancelled = stop.get_token()}); });
}

}  // namespace
}  // namespace paceline
