// What is derived from the chat templates of the families that docs/models.md lists.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "tests/tools/turn_reading.h"
#include "tools/derive_turn_format.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using Style = ArgumentsFormat::Style;

const fs::path kFolder = fs::path(PACELINE_SOURCE_DIR).parent_path() / "shared/templates/jinja";

struct Derived {
  std::string_view name;
  std::string_view reasoning;  // the mark before it; empty: none
  std::string_view toggle;     // the variable that switches it
  std::string_view calls;      // the text by which a call is recognised; empty: none
  Style style = Style::json_object;
};

// The same table as in docs/models.md.
constexpr Derived kTable[] = {
    {"GLM-4.6", "<think>", "enable_thinking", "<tool_call>", Style::parameters},
    {"Qwen-Qwen3-0.6B", "<think>", "enable_thinking", "<tool_call>"},
    {"Qwen3-Coder", "", "", "<tool_call>", Style::parameters},
    {"HuggingFaceTB-SmolLM3-3B", "<think>", "enable_thinking", ""},
    {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", "<|START_THINKING|>", "enable_thinking",
     "<|START_ACTION|>"},
    {"google-gemma-4-31B-it", "<|channel>thought", "enable_thinking", "<|tool_call>",
     Style::parameters},
    {"mistralai-Ministral-3-14B-Reasoning-2512", "[THINK]", "", "[TOOL_CALLS]"},
    {"unsloth-mistral-Devstral-Small-2507", "", "", "[TOOL_CALLS]"},
    {"ibm-granite-granite-3.3-2B-Instruct", "", "", ""},
    {"microsoft-Phi-3.5-mini-instruct", "", "", ""},
};

TEST(FamilyTemplates, RenderAndSayHowTheyWriteReasoningAndCalls) {
  if (!fs::exists(kFolder)) GTEST_SKIP() << kFolder << " isn't there";
  for (const Derived& expected : kTable) {
    const std::string name(expected.name);
    SCOPED_TRACE(name);
    const auto chat_template =
        ChatTemplate::parse(read_text_file(kFolder / (name + ".jinja"), 1 << 20), name);
    const std::string prompt = chat_template.render({.messages = {{"user", "A question?"}}});
    EXPECT_NE(prompt.find("A question?"), prompt.npos);
    const TurnFormat format =
        derive_turn_format(chat_template, {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}});
    EXPECT_EQ(format.reasoning ? format.reasoning->begin : "", expected.reasoning);
    const bool is_switched = format.reasoning && format.reasoning->toggle;
    EXPECT_EQ(is_switched ? format.reasoning->toggle->variable : "", expected.toggle);
    EXPECT_EQ(format.calls ? format.calls->trigger : "", expected.calls);
    if (format.calls) {
      EXPECT_EQ(format.calls->arguments.style, expected.style);
    }
  }
}

}  // namespace
}  // namespace paceline
