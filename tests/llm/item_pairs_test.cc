// Embeddings, scores of pairs and decisions have the same bits with every pair of their options,
// however they are run.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "llm/request_pool.h"
#include "load/loaded_model.h"
#include "load/stored_model.h"
#include "tests/llm/equalities.h"
#include "tests/models/adapter_directory.h"
#include "tests/source_path.h"

namespace paceline::testing {
namespace {

constexpr int64_t kLongest = 256;        // tokens
constexpr int64_t kLongestJudged = 700;  // with Qwen3-Reranker's prompt

template <class Options>
using Features = std::map<std::string, std::function<void(Options&)>>;

template <class Options>
Features<Options> common_features() {
  return {{"plain", [](Options&) {}},
          {"adapter", [](Options& o) { o.lora = "first"; }},
          {"cache_salt", [](Options& o) { o.cache_salt = "other"; }},
          {"priority", [](Options& o) { o.priority = -1; }}};
}

template <class Options>
std::vector<Options> all_pairs(const Features<Options>& features) {
  std::vector<Options> all;
  for (auto first = features.begin(); first != features.end(); ++first) {
    for (auto second = first; second != features.end(); ++second) {
      Options options;
      first->second(options);
      second->second(options);
      all.push_back(std::move(options));
    }
  }
  return all;
}

// Everything that is asked of one model.
struct Items {
  std::vector<Prompt> prompts;
  std::vector<EmbedOptions> embed_options;  // of each prompt
  std::vector<TextPair> pairs;
  std::vector<PairOptions> pair_options;  // of all pairs
  std::vector<DecisionQuestion> questions = {};
  std::vector<DecideOptions> decide_options = {};  // of all questions about each prompt
};

using Answers = std::vector<std::vector<float>>;

std::vector<float> values_of(const RequestPool::Done& done) {
  if (const auto* const embedding = std::get_if<Embedding>(&done.result)) return embedding->values;
  if (const auto* const scores = std::get_if<PairScores>(&done.result)) return scores->values;
  if (const auto* const decisions = std::get_if<Decisions>(&done.result)) {
    std::vector<float> values;
    for (const DecisionAnswer& answer : decisions->answers) {
      values.insert(values.end(), answer.logprobs.begin(), answer.logprobs.end());
      values.insert(values.end(), answer.probabilities.begin(), answer.probabilities.end());
      values.insert(values.end(), {answer.label_mass, answer.argmax_is_label ? 1.0f : 0.0f});
    }
    return values;
  }
  const auto* const error = std::get_if<ErrorInfo>(&done.result);
  ADD_FAILURE() << (error == nullptr ? "another kind of result" : error->message);
  return {};
}

// In one pool, or each in a pool of its own.
Answers answer(LLM& llm, const Items& items, bool together) {
  Answers answers;
  RequestPool pool(llm);
  const auto collect = [&] {
    while (auto done = pool.next()) answers[static_cast<size_t>(done->tag)] = values_of(*done);
  };
  const auto next_tag = [&] {
    if (!together) collect();
    answers.emplace_back();
    return static_cast<int64_t>(answers.size()) - 1;
  };
  for (const EmbedOptions& options : items.embed_options) {
    for (const Prompt& prompt : items.prompts) pool.embed(next_tag(), prompt, options);
  }
  for (const PairOptions& options : items.pair_options) {
    pool.score_pairs(next_tag(), items.pairs, options);
  }
  for (const DecideOptions& options : items.decide_options) {
    for (const Prompt& prompt : items.prompts) {
      pool.decide(next_tag(), std::get<std::string>(prompt), items.questions, options);
    }
  }
  collect();
  return answers;
}

LoadOptions options_of(const std::string& model, const AdapterDirectory& directory) {
  LoadOptions options{.model = source_path("tests/goldens/" + model),
                      .max_model_len = model.ends_with("reranker") ? kLongestJudged : kLongest,
                      .num_threads = 1};
  const DecoderConfig config =
      read_model_config(open_model_source(options.model), LoadFormat::files);
  options.loras = {{.name = "first", .path = directory.write("first", config, {.size = 0.1f})}};
  return options;
}

// Little more than what the longest sequence needs.
void tighten_cache(LoadOptions& options) {
  LoadOptions one = options;
  one.max_num_seqs = 1;
  options.block_size = one.block_size = 2;
  options.kv_cache_memory_bytes = LLM::load(one).model_info().kv_cache_bytes * 5 / 4;
}

void expect_same_in_every_way(const std::string& model, const Items& items) {
  const AdapterDirectory directory;
  const LoadOptions base = options_of(model, directory);
  LoadOptions one_by_one = base;
  one_by_one.max_num_seqs = 1;
  one_by_one.prefix_caching = false;
  LLM reference = LLM::load(one_by_one);
  const Answers expected = answer(reference, items, false);
  EXPECT_GT(std::set(expected.begin(), expected.end()).size(), 1u) << "options must matter";
  auto ways = executions();
  ways["a_tight_cache"] = tighten_cache;
  for (const auto& [name, change] : ways) {
    SCOPED_TRACE(name);
    LoadOptions options = base;
    change(options);
    LLM llm = LLM::load(options);
    EXPECT_EQ(answer(llm, items, true), expected);
    EXPECT_EQ(answer(llm, items, true), expected) << "with what the first left in the cache";
    EXPECT_EQ(answer(llm, items, false), expected) << "one by one";
  }
}

const std::vector<Prompt> kTexts = {"The old house by the sea", "where is the sea",
                                    "The old house by the sea, and a dark and stormy night"};

const std::vector<TextPair> kPairs = {{"where is the sea", "The old house by the sea"},
                                      {"where is the sea", "a dark night"},
                                      {"yes", "no"},
                                      {"where is the sea", "The old house by the sea"}};

TEST(ItemFeaturePairs, EmbeddingsChangeNoBitHoweverTheyAreRun) {
  Features<EmbedOptions> features = common_features<EmbedOptions>();
  features["dimensions"] = [](EmbedOptions& o) { o.dimensions = 12; };
  features["prompt"] = [](EmbedOptions& o) { o.named_prompt = "query"; };
  features["no_special_tokens"] = [](EmbedOptions& o) { o.add_special_tokens = false; };
  expect_same_in_every_way("embeddings/qwen3",
                           {.prompts = kTexts, .embed_options = all_pairs(features)});
}

TEST(ItemFeaturePairs, EmbeddingsOfMixturesToo) {
  const std::vector<Prompt> prompts = {std::vector<int32_t>{57, 75, 187, 186, 44, 182, 183},
                                       std::vector<int32_t>{57, 75, 187, 186, 44, 99, 7, 14, 253},
                                       std::vector<int32_t>{3}};
  for (const char* const model : {"models/qwen2_moe_sparse_step", "models/gpt_oss_mxfp4"}) {
    SCOPED_TRACE(model);
    expect_same_in_every_way(
        model, {.prompts = prompts, .embed_options = all_pairs(common_features<EmbedOptions>())});
  }
}

class PairFeaturePairs : public ::testing::TestWithParam<std::string> {};

TEST_P(PairFeaturePairs, ScoresChangeNoBitHoweverTheyAreRun) {
  Features<PairOptions> features = common_features<PairOptions>();
  features["prompts"] = [](PairOptions& o) { o.uses_prompts = true; };
  features["instruction"] = [](PairOptions& o) { o.instruction = "Find the place"; };
  expect_same_in_every_way("embeddings/" + GetParam(),
                           {.pairs = kPairs, .pair_options = all_pairs(features)});
}

TEST(DecisionFeaturePairs, AnswersChangeNoBitHoweverTheyAreRun) {
  Features<DecideOptions> features = common_features<DecideOptions>();
  features["content_free"] = [](DecideOptions& o) { o.content_free_input = "N/A"; };
  features["temperature"] = [](DecideOptions& o) { o.temperature = 1.7f; };
  Items items{.prompts = {kTexts[0], kTexts[2]}, .decide_options = all_pairs(features)};
  items.questions = {{.instructions = "Is it old?"},
                     {.kind = QuestionKind::choice,
                      .instructions = "Where?",
                      .options = {{.value = "sea"}, {.value = true}, {.value = "true"}}},
                     {.kind = QuestionKind::score,
                      .instructions = "How dark?",
                      .options = {{.value = "bright"}, {.value = "dark"}}}};
  expect_same_in_every_way("embeddings/reranker", items);
}

INSTANTIATE_TEST_SUITE_P(all, PairFeaturePairs,
                         ::testing::Values("qwen3", "reranker", "cross_encoder"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace paceline::testing
