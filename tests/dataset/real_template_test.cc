// What is learnt of a chat of two turns, with real chat templates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/mapped_file.h"
#include "tests/dataset/training_files.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kRealChat =
    R"({"messages": [{"role": "user", "content": "Hi 1"}, {"role": "assistant", "content": "Hello 2"},)"
    R"( {"role": "user", "content": "Bye 3"}, {"role": "assistant", "content": "See you 4"}]})";

// They render no chat without tools, or without a token that the bundled tokenizer hasn't.
const std::vector<std::string> kNotRendered = {
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", "meetkai-functionary-medium-v3.1.jinja"};

struct Learnt {
  std::string completion;
  std::string turns;
};

const std::map<std::string, Learnt> kExpected = {
    {"Qwen-Qwen2.5-7B-Instruct.jinja",
     {"See you 4<|im_end|>\n", "Hello 2<|im_end|>\n|See you 4<|im_end|>\n"}},
    {"Qwen-Qwen3-0.6B.jinja",
     {"<think>\n\n</think>\n\nSee you 4<|im_end|>\n",
      "Hello 2<|im_end|>\n|<think>\n\n</think>\n\nSee you 4<|im_end|>\n"}},
    {"Qwen-QwQ-32B.jinja", {"See you 4<|im_end|>\n", "Hello 2<|im_end|>\n|See you 4<|im_end|>\n"}},
    {"meta-llama-Llama-3.2-3B-Instruct.jinja",
     {"See you 4<|eot_id|>", "Hello 2<|eot_id|>|See you 4<|eot_id|>"}},
    {"google-gemma-2-2b-it.jinja",
     {"See you 4<end_of_turn>\n", "Hello 2<end_of_turn>\n|See you 4<end_of_turn>\n"}},
    {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja",
     {"See you 4<｜end▁of▁sentence｜>",
      "Hello 2<｜end▁of▁sentence｜>|See you 4<｜end▁of▁sentence｜>"}},
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja",
     {"</think>See you 4<|im_end|>\n",
      "</think>Hello 2<|im_end|>\n|</think>See you 4<|im_end|>\n"}},
};

class RealTemplateTest : public DatasetTest {
 protected:
  // The learnt part of the chat, which ends where the chat does.
  std::string learnt(const ChatTemplate& chat_template, LossTokens loss) const {
    const DatasetModel model{tokenizer(), &chat_template, end_of_text(tokenizer())};
    const Dataset dataset =
        read("a.jsonl", kRealChat,
             {.loss_tokens = loss, .max_seq_length = 10'000, .now = "2026-03-07T12:00:00"}, model);
    EXPECT_EQ(dataset.examples.at(0).counts.back(), 1);
    return learnt_text(dataset.examples.at(0));
  }
};

TEST_F(RealTemplateTest, LearnsTheTurnsOfTheAssistant) {
  const fs::path folder = fs::path(PACELINE_SOURCE_DIR).parent_path() / "shared/templates/jinja";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " isn't there";
  size_t num_expected = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    if (std::count(kNotRendered.begin(), kNotRendered.end(), name) > 0) continue;
    const auto chat_template = ChatTemplate::parse(read_text_file(entry.path(), 1 << 20), name);
    const std::string completion = learnt(chat_template, LossTokens::completion);
    const std::string turns = learnt(chat_template, LossTokens::assistant_turns);
    EXPECT_THAT(completion, HasSubstr("See you 4"));
    EXPECT_THAT(turns, EndsWith("|" + completion));
    EXPECT_THAT(turns, HasSubstr("Hello 2"));
    for (const char* other : {"Hi", "1", "Hello", "2", "Bye", "3"}) {
      EXPECT_THAT(completion, Not(HasSubstr(other)));
    }
    for (const char* other : {"Hi", "1", "Bye", "3"}) EXPECT_THAT(turns, Not(HasSubstr(other)));
    if (const auto expected = kExpected.find(name); expected != kExpected.end()) {
      ++num_expected;
      EXPECT_EQ(completion, expected->second.completion);
      EXPECT_EQ(turns, expected->second.turns);
    }
  }
  EXPECT_EQ(num_expected, kExpected.size());
}

}  // namespace
}  // namespace paceline
