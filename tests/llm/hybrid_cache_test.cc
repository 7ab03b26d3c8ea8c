// Prefixes of models whose layers have states: a conversation's next turn computes its own tokens,
// whatever follows the prompt, and a long text with another ending at most 512 tokens more.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "base/mapped_file.h"
#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"
#include "tests/test_directory.h"

namespace paceline {
namespace {

constexpr int64_t kPromptTokens = 1500;
constexpr int64_t kStateChunkTokens = 16;

class HybridCache : public ::testing::Test {
 protected:
  // The golden's model with a longer context.
  HybridCache() {
    const std::string golden = source_path("tests/goldens/hybrids/qwen3_5_text");
    for (const char* const file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(std::filesystem::path(golden) / file, directory_.path() / file);
    }
    const auto config = directory_.path() / "config.json";
    const std::string text = read_text_file(config, 1 << 20);
    std::ofstream(config) << std::regex_replace(
        text, std::regex("\"max_position_embeddings\": \\d+"), "\"max_position_embeddings\": 8192");
    for (int64_t i = 0; i < kPromptTokens; ++i) {
      prompt_.push_back(static_cast<int32_t>(4 + i * i % 251));
    }
  }

  LoadOptions options(bool has_cache) const {
    return {.model = directory_.path().string(), .prefix_caching = has_cache, .num_threads = 2};
  }

  static Completion generate(LLM& llm, const std::vector<int32_t>& prompt) {
    return llm
        .generate(prompt, {.max_tokens = 40, .temperature = 0, .ignore_eos = true, .logprobs = 2})
        .completion();
  }

  // A prompt that is found from the cache up to all but `most` of its tokens, with the bits of one
  // that is computed whole.
  void expect_computes_at_most(LLM& llm, const std::vector<int32_t>& prompt, int64_t most) {
    const Completion found = generate(llm, prompt);
    EXPECT_LE(std::ssize(prompt) - found.usage.cached_tokens, most);
    LLM fresh = LLM::load(options(false));
    const Completion expected = generate(fresh, prompt);
    EXPECT_EQ(expected.usage.cached_tokens, 0);
    EXPECT_EQ(found.token_ids, expected.token_ids);
    for (size_t i = 0; i < found.logprobs.size(); ++i) {
      EXPECT_EQ(found.logprobs[i].logprob, expected.logprobs[i].logprob);
    }
  }

  TestDirectory directory_;
  std::vector<int32_t> prompt_;
};

const std::vector<int32_t> kNextTurn = {9, 31, 77, 140, 201, 55, 18, 90, 4, 12, 66, 240, 31, 7};

TEST_F(HybridCache, ANextTurnComputesItsOwnTokens) {
  LLM llm = LLM::load(options(true));
  const Completion first = generate(llm, prompt_);
  std::vector<int32_t> second = prompt_;
  second.insert(second.end(), first.token_ids.begin(), first.token_ids.end());
  second.insert(second.end(), kNextTurn.begin(), kNextTurn.end());
  // The last token of the answer wasn't computed, nor is what comes after its last whole block.
  expect_computes_at_most(llm, second, std::ssize(kNextTurn) + 1 + kStateChunkTokens);
}

TEST_F(HybridCache, ATurnWithoutTheAnswerIsFoundWhereThePromptEnded) {
  LLM llm = LLM::load(options(true));
  generate(llm, prompt_);
  std::vector<int32_t> second = prompt_;
  second.insert(second.end(), kNextTurn.begin(), kNextTurn.end());
  expect_computes_at_most(llm, second, std::ssize(kNextTurn) + kStateChunkTokens);
}

TEST_F(HybridCache, AGpuRefusesStatesThatAreRounded) {
  ::setenv("PACELINE_CUDA_EMULATION", "1", 1);
  LoadOptions on_gpu = options(true);
  on_gpu.device = "cuda";
  on_gpu.state_dtype = DataType::bfloat16;
  expect_error(ErrorCode::unsupported, {"--state-dtype bfloat16", "--device cpu"},
               [&] { LLM::load(on_gpu); });
  ::unsetenv("PACELINE_CUDA_EMULATION");
}

TEST_F(HybridCache, AnotherEndingComputesAtMost512TokensMore) {
  LLM llm = LLM::load(options(true));
  generate(llm, prompt_);
  std::vector<int32_t> other(prompt_.begin(), prompt_.begin() + 1300);
  other.insert(other.end(), kNextTurn.begin(), kNextTurn.end());
  expect_computes_at_most(llm, other, 512 + std::ssize(kNextTurn));
}

// Their common beginning is longer than a step: it is computed once, and held without being kept.
TEST_F(HybridCache, ClassificationsShareTheirBeginning) {
  LLM llm = LLM::load(options(true));
  std::vector<Prompt> items;
  for (int32_t i = 0; i < 6; ++i) {
    std::vector<int32_t> prompt = prompt_;
    prompt.insert(prompt.end(), {5 + i, 40 + i, 77});
    items.emplace_back(prompt);
  }
  const ClassifyOptions asked = {.with_logits = true};
  const auto found = llm.classify(items, asked);
  // The first is computed before another has shown what they share.
  EXPECT_GE(llm.metrics().cached_tokens, 5 * (kPromptTokens - kStateChunkTokens));
  LLM fresh = LLM::load(options(false));
  const auto expected = fresh.classify(items, asked);
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(std::get<Classification>(found[i]).logits,
              std::get<Classification>(expected[i]).logits);
  }
}

// Of a model with a tokenizer: what questions and labels compute beside what they share.
class HybridTexts : public ::testing::Test {
 protected:
  HybridTexts() {
    const std::filesystem::path bundled = source_path("models/paceline-10m");
    std::filesystem::copy_file(bundled / "tokenizer.json", directory_.path() / "tokenizer.json");
    const std::string config =
        read_text_file(source_path("tests/goldens/hybrids/qwen3_5_text/config.json"), 1 << 20);
    directory_.write(
        "config.json",
        std::regex_replace(std::regex_replace(config, std::regex("(vocab_size\": )256"), "$014099"),
                           std::regex("(embeddings\": )256"), "$014096"));
  }

  LLM load(bool has_cache) {
    return LLM::load({.model = directory_.path().string(),
                      .load_format = LoadFormat::dummy,
                      .prefix_caching = has_cache,
                      .trace_file = has_cache ? trace() : "",
                      .num_threads = 1});
  }

  std::string trace() const { return directory_.path() / "trace.jsonl"; }

  // By an engine that has ended.
  int64_t rows_computed() const {
    const std::string text = read_text_file(trace(), 1 << 24);
    const std::regex rows("\"num_rows\":(\\d+)");
    int64_t sum = 0;
    for (std::sregex_iterator step(text.begin(), text.end(), rows), end; step != end; ++step) {
      sum += std::stoll((*step)[1]);
    }
    return sum;
  }

  TestDirectory directory_;
};

TEST_F(HybridTexts, QuestionsShareTheirInput) {
  std::string input;
  for (int i = 0; i < 60; ++i) input += "The rain came down on the old town. ";
  std::vector<DecisionQuestion> questions;
  for (const char* const asked : {"Is it old?", "Is it dry?", "Did it rain?", "Is it a town?"}) {
    questions.push_back({.instructions = asked});
  }
  const auto ask = [&](bool has_cache) { return load(has_cache).decide(input, questions); };
  const Decisions found = ask(true), expected = ask(false);
  const auto shared = static_cast<int64_t>(load(false).tokenize(input).size());
  EXPECT_LT(rows_computed(), shared + 4 * 60);
  for (size_t i = 0; i < questions.size(); ++i) {
    EXPECT_EQ(found.answers[i].logprobs, expected.answers[i].logprobs);
  }
}

// Earlier turns are written without the reasoning that this template begins and ends.
TEST_F(HybridTexts, ATurnFindsTheMessagesBeforeTheAnswerThatItWritesOtherwise) {
  directory_.write("chat_template.jinja",
                   "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + "
                   "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}"
                   "{{ '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}{% endif %}");
  const GenerateOptions brief = {.max_tokens = 3, .temperature = 0, .ignore_eos = true};
  LLM llm = load(true), fresh = load(false);
  std::string question = "What is it?";
  for (int i = 0; i < 16; ++i, question += " now") {
    ChatInput turns = {.messages = {{"system", std::to_string(i)}, {"user", question}}};
    llm.chat(turns, brief).completion();
    turns.add_generation_prompt = false;
    const int64_t length = std::ssize(llm.tokenize(llm.render(turns)));
    turns.add_generation_prompt = true;
    turns.messages.push_back({"assistant", "A house."});
    turns.messages.push_back({"user", "Whose?"});
    const Completion found = llm.chat(turns, brief).completion();
    EXPECT_GE(found.usage.cached_tokens, length / 16 * 16);
    EXPECT_EQ(found.token_ids, fresh.chat(turns, brief).completion().token_ids);
  }
}

// Whatever remains of its last chunk.
TEST_F(HybridTexts, LabelsShareTheirText) {
  for (const int32_t size : {63, 64, 65}) {
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < size; ++i) prompt.push_back(300 + i);
    const ClassifyOptions asked = {.labels = {" and a good one", " and a bad one", " or not one"}};
    const auto score = [&](bool has_cache) {
      return std::get<Classification>(
                 load(has_cache).classify(std::vector<Prompt>{prompt}, asked)[0])
          .scores;
    };
    EXPECT_EQ(score(true), score(false));
    EXPECT_LT(rows_computed(), size + 3 * (16 + 8)) << size;
  }
}

}  // namespace
}  // namespace paceline
