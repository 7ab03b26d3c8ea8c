// A preloaded system prompt is computed once, kept, and saves time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include "paceline/llm.h"
#include "tests/expect_error.h"
#include "tests/source_path.h"

namespace paceline {
namespace {

LoadOptions prompt_model(int64_t max_model_len = 256) {
  return {.model = source_path("models/paceline-10m"),
          .max_model_len = max_model_len,
          .num_threads = 2};
}

// A prompt of at least `num_tokens` tokens; different ones for another `first` word.
std::string long_prompt(const LLM& llm, const std::string& first, size_t num_tokens = 200) {
  std::string text = first;
  for (int i = 0; llm.tokenize(text).size() < num_tokens; ++i) {
    text += " The keeper wrote the number " + std::to_string(i) + " into the book and went on.";
  }
  return text;
}

ChatInput chat(const std::string& system, const std::string& question) {
  return {.messages = {{"system", system}, {"user", question}}};
}

GenerateOptions greedy(int64_t max_tokens) {
  return {.max_tokens = max_tokens, .temperature = 0.0f};
}

double seconds_to_first_token(LLM& llm, const ChatInput& input) {
  llm.chat(input, greedy(1)).completion();
  return llm.metrics().time_to_first_token_seconds;
}

TEST(SystemPrompt, IsComputedOnceAndChangesNothing) {
  LLM plain = LLM::load(prompt_model());
  LLM llm = LLM::load(prompt_model());
  const std::string system = long_prompt(plain, "Be brief.");
  const int64_t kept = llm.preload_system_prompt(system);
  EXPECT_GT(kept, 190);
  for (const char* question : {"The old house", "\nA dog", "a"}) {
    const Completion expected = plain.chat(chat(system, question), greedy(8)).completion();
    const Completion found = llm.chat(chat(system, question), greedy(8)).completion();
    EXPECT_EQ(found.token_ids, expected.token_ids);
    EXPECT_EQ(found.usage.cached_tokens, kept) << question;
    EXPECT_EQ(found.usage.prompt_tokens, expected.usage.prompt_tokens);
  }
  GenerateOptions salted = greedy(1);
  salted.cache_salt = "mine";
  EXPECT_EQ(llm.chat(chat(system, "a"), salted).completion().usage.cached_tokens, 0);
}

TEST(SystemPrompt, StaysWhenOthersNeedTheRoom) {
  LoadOptions options = prompt_model();
  options.max_num_seqs = 1;
  const size_t context_bytes = LLM::load(options).model_info().kv_cache_bytes;
  options.max_num_seqs = 4;
  options.kv_cache_memory_bytes = 2 * context_bytes;
  LLM llm = LLM::load(options);
  const std::string system = long_prompt(llm, "Be brief.");
  const std::string passing = long_prompt(llm, "Take your time.");
  llm.chat(chat(passing, "a"), greedy(1)).completion();
  EXPECT_GT(llm.chat(chat(passing, "b"), greedy(1)).completion().usage.cached_tokens, 190);
  const int64_t kept = llm.preload_system_prompt(system);
  for (int i = 0; i < 4; ++i) {
    llm.chat(chat(long_prompt(llm, "Other " + std::to_string(i)), "a"), greedy(1)).completion();
  }
  EXPECT_EQ(llm.chat(chat(system, "b"), greedy(1)).completion().usage.cached_tokens, kept);
  // Prefixes that aren't held were evicted.
  EXPECT_LT(llm.chat(chat(passing, "a"), greedy(1)).completion().usage.cached_tokens, 16);
}

TEST(SystemPrompt, GoesWhenAnotherComes) {
  LoadOptions options = prompt_model();
  options.max_num_seqs = 1;
  LLM llm = LLM::load(options);  // room for one of them at a time
  const std::string first = long_prompt(llm, "Be brief."), second = long_prompt(llm, "Be kind.");
  llm.preload_system_prompt(first);
  const int64_t kept = llm.preload_system_prompt(second);
  EXPECT_EQ(llm.chat(chat(second, "b"), greedy(1)).completion().usage.cached_tokens, kept);
  EXPECT_EQ(llm.preload_system_prompt(""), 0);
  EXPECT_GT(llm.chat(chat(first, "b"), greedy(1)).completion().usage.prompt_tokens, 190);
  llm.close();
  expect_error(ErrorCode::invalid, {"closed"}, [&] { llm.preload_system_prompt(first); });
}

TEST(SystemPrompt, NeedsAPrefixCacheAndAWholeBlock) {
  LoadOptions options = prompt_model();
  LLM llm = LLM::load(options);
  options.prefix_caching = false;
  LLM uncached = LLM::load(options);
  EXPECT_EQ(uncached.preload_system_prompt(long_prompt(llm, "Be brief.")), 0);
  options = prompt_model();
  options.block_size = 512;
  EXPECT_EQ(LLM::load(options).preload_system_prompt("Be brief."), 0);
}

// A temporary file with a template.
class TemplateFile {
 public:
  explicit TemplateFile(std::string_view text)
      : path_(std::filesystem::temp_directory_path() /
              ("paceline_template_" + std::to_string(::getpid()) + ".jinja")) {
    std::ofstream(path_) << text;
  }
  ~TemplateFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(SystemPrompt, TheOptionIsNamedWhenItCannotBe) {
  LoadOptions options = prompt_model();
  LLM llm = LLM::load(options);
  const std::string text = long_prompt(llm, "Be brief.");
  expect_error(ErrorCode::invalid, {"--system-prompt", "256"},
               [&] { llm.preload_system_prompt(text + text); });
  for (const auto& [template_text, code, words] :
       {std::tuple{"{% for m in messages %}{% if 'brief' in m.content %}"
                   "{{ raise_exception('no such text') }}{% endif %}{% endfor %}"
                   "{{ messages[0].content }}",
                   ErrorCode::invalid, "no such text"},
        std::tuple{"{% if 'brief' not in messages[-1].content %}{{ messages[-1].content }}"
                   "{% endif %}",
                   ErrorCode::unsupported, "leaves"}}) {
    const TemplateFile file(template_text);
    options.chat_template = file.path();
    LLM refusing = LLM::load(options);
    expect_error(code, {"--system-prompt", words}, [&] { refusing.preload_system_prompt(text); });
  }
  LLM tokens_only = LLM::load({.model = source_path("tests/goldens/models/llama_plain")});
  expect_error(ErrorCode::not_found, {"--system-prompt", "tokenizer.json"},
               [&] { tokens_only.preload_system_prompt(text); });
}

TEST(SystemPrompt, ATemplateWithoutSystemMessagesHasItBeforeTheUsersText) {
  const TemplateFile file(
      "{% if messages[0].role == 'system' %}{{ raise_exception('no such role') }}{% endif %}"
      "{{ messages[0].content }}");
  LoadOptions options = prompt_model();
  options.chat_template = file.path();
  LLM llm = LLM::load(options);
  EXPECT_GT(llm.preload_system_prompt(long_prompt(llm, "Be brief.")), 0);
}

// Measured: some 50 times sooner. The bound leaves room for a busy machine, and for a sanitized
// build, in which kernels are as fast as ever and all else is slow.
TEST(SystemPrompt, BringsTheFirstTokenSooner) {
  LoadOptions options = prompt_model(1024);
  options.num_threads = 1;
  LLM llm = LLM::load(options);
  double cold = 1e9, warm = 1e9;
  for (int i = 0; i < 3; ++i) {
    const std::string system = long_prompt(llm, "Be brief, number " + std::to_string(i) + ".", 970);
    cold = std::min(cold, seconds_to_first_token(llm, chat(system, "The old house")));
    llm.preload_system_prompt(system);
    warm = std::min(warm, seconds_to_first_token(llm, chat(system, "A dog")));
  }
  EXPECT_GE(cold / warm, 3) << cold << " s cold, " << warm << " s warm";
  RecordProperty("cold_ms", std::to_string(1e3 * cold));
  RecordProperty("warm_ms", std::to_string(1e3 * warm));
}

}  // namespace
}  // namespace paceline
