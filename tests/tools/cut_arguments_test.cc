#include "tools/cut_arguments.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/mapped_file.h"
#include "tests/expect_error.h"
#include "tests/tools/mini_templates.h"
#include "tools/derive_turn_format.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kHistoryTemplates =
    fs::path(PACELINE_SOURCE_DIR).parent_path() / "shared/templates/jinja";
const std::vector<std::pair<std::string, std::string>> kHistoryTokens{{"bos_token", "<BOS>"},
                                                                      {"eos_token", "<EOS>"}};

// Of messages that have calls alone.
std::string content_member(CallMessageShape::Content content) {
  if (content == CallMessageShape::Content::absent) return "";
  return content == CallMessageShape::Content::null ? R"("content": null, )" : R"("content": "", )";
}

ChatInput history(const std::string& arguments, const CallMessageShape& shape = {}) {
  const std::string calls = R"({"role": "assistant", )" + content_member(shape.no_content) +
                            R"("tool_calls": [{"id": "abcde0001", "type": "function",
                               "function": {"name": "f", "arguments": )" +
                            json_quote(arguments) + "}}]}";
  return {
      .messages = {{"user", "A question?"},
                   {.role = {}, .content = {}, .json = calls},
                   {.role = {},
                    .content = {},
                    .json = R"({"role": "tool", "tool_call_id": "abcde0001", "content": "no"})"}},
      .tools_json = R"([{"type": "function", "function": {"name": "f", "description": "d"}}])",
      .special_tokens = kHistoryTokens};
}

std::string render_cut(const ChatTemplate& chat_template, const ChatInput& input, bool are_text) {
  return render_with_cut_arguments(
      input, are_text, [&](const ChatInput& form) { return chat_template.render(form); });
}

bool takes_tools(const ChatTemplate& chat_template, ChatInput input) {
  input.messages.resize(1);
  try {
    chat_template.render(input);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string rendered_history(std::string_view assistant, const std::string& arguments) {
  const std::string source =
      "{%- for m in messages %}{%- for c in m.tool_calls or [] %}"
      "{%- set a = c.function.arguments %}" +
      std::string(assistant) + "{%- endfor %}{%- endfor %}";
  return render_cut(ChatTemplate::parse(source, "test"), history(arguments), false);
}

TEST(CutArguments, StandAsTheyAreWhereTheTemplateWritesText) {
  EXPECT_EQ(rendered_history("{{ a if a is string else a | tojson }}", R"({"a": "x)"),
            R"({"a": "x)");
}

TEST(CutArguments, AreAValueWhereTheTemplateTakesAnObject) {
  const std::string cut = R"({"a": "x)";
  const std::string whole = R"({"invalid_arguments": "{\"a\": \"x"})";
  EXPECT_EQ(rendered_history("{{ a | tojson }}", cut), whole);
  EXPECT_EQ(rendered_history("{%- for k, v in a.items() %}{{ k }}={{ v }}{%- endfor %}", cut),
            "invalid_arguments=" + cut);
  EXPECT_EQ(rendered_history("{{ a | tojson }}", "[1]"), R"("[1]")");
  EXPECT_EQ(rendered_history("{{ a }}", R"({"a": 1})"), R"({"a": 1})");  // they aren't cut
  expect_error(ErrorCode::invalid, {"never"},
               [] { rendered_history("{{ raise_exception('never') }}", "{"); });
}

TEST(CutArguments, AreWrittenByEveryTemplateThatWritesCalls) {
  std::vector<MiniTemplate> templates = mini_templates();
  if (fs::exists(kHistoryTemplates)) {
    for (const auto& entry : fs::directory_iterator(kHistoryTemplates)) {
      templates.push_back({entry.path().stem().string(), read_text_file(entry.path(), 1 << 20)});
    }
  }
  for (const MiniTemplate& one : templates) {
    SCOPED_TRACE(one.name);
    const auto chat_template = ChatTemplate::parse(one.source, one.name);
    const TurnFormat format = derive_turn_format(chat_template, kHistoryTokens);
    if (!format.calls) continue;
    for (const char* const arguments : {R"({"city": "Os)", "Oslo", "nul", "[1, 2"}) {
      ChatInput input = history(arguments, format.calls->message);
      if (!takes_tools(chat_template, input)) input.tools_json.clear();
      const std::string prompt =
          render_cut(chat_template, input, format.calls->message.arguments_are_text);
      const std::string quoted = json_quote(arguments);
      const bool stands = prompt.find(arguments) != prompt.npos;
      EXPECT_TRUE(stands || prompt.find(quoted.substr(1, quoted.size() - 2)) != prompt.npos ||
                  prompt.find("invalid_arguments") != prompt.npos)
          << prompt;
    }
  }
}

}  // namespace
}  // namespace paceline
