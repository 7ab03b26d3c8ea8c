// Calls of earlier turns reach a chat template in the form that it asks for.
#include "text/chat_prompt.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "paceline/tokenizer.h"
#include "tests/source_path.h"
#include "tests/tools/mini_templates.h"
#include "text/chat_turns.h"

namespace paceline {
namespace {

std::string rendered(const std::string& source, const std::string& assistant) {
  static const Tokenizer tokenizer = Tokenizer::load(source_path("models/paceline-10m"));
  const ChatTemplate chat_template = ChatTemplate::parse(source, "test");
  const ChatTurns turns(chat_template, tokenizer);
  const ChatInput input{.messages = {{"user", "Oslo?"}, {.json = assistant}},
                        .add_generation_prompt = false};
  return render_chat({.chat_template = &chat_template, .tokenizer = &tokenizer, .turns = &turns},
                     input)
      .text;
}

std::string message(const std::string& content) {
  return fmt::format(
      R"({{"role": "assistant", {}"tool_calls": [{{"id": "abc123def", "type": "function", "function":)"
      R"( {{"name": "find", "arguments": {{"city": "Oslo"}}}}}}]}})",
      content);
}

std::string source_with(const std::string& condition, const std::string& arguments) {
  return chat_source("{%- if " + condition +
                     " %}{%- for c in m.tool_calls %}{{- '[CALL]' + c.function.name + ' ' + " +
                     arguments +
                     " }}{%- endfor %}{%- else %}{{- m.content }}{%- endif %}"
                     "{{- '<|e|>' }}");
}

TEST(ChatPrompt, AMissingContentIsWhatTheTemplateAsksFor) {
  const std::string expected = R"(<|u|>Oslo?<|e|><|a|>[CALL]find {"city": "Oslo"}<|e|>)";
  for (const char* const condition :
       {"m.tool_calls", "m.tool_calls and m.content is none", "m.content is not defined"}) {
    const std::string source = source_with(condition, "c.function.arguments|tojson");
    for (const char* const content : {R"("content": "", )", R"("content": null, )", ""}) {
      EXPECT_EQ(rendered(source, message(content)), expected) << condition << " " << content;
    }
  }
  // A content that says something stays.
  EXPECT_EQ(rendered(source_with("m.content is none", "c.function.arguments|tojson"),
                     message(R"("content": "I look.", )")),
            "<|u|>Oslo?<|e|><|a|>I look.<|e|>");
}

TEST(ChatPrompt, ArgumentsAreTextWhereTheTemplateAsksForIt) {
  EXPECT_EQ(rendered(source_with("m.tool_calls", "c.function.arguments"), message("")),
            R"(<|u|>Oslo?<|e|><|a|>[CALL]find {"city":"Oslo"}<|e|>)");
}

TEST(ChatPrompt, CallsAreToldWhereTheTemplateWritesNone) {
  EXPECT_EQ(rendered(chat_source("{{- m.content + '<|e|>' }}"), message(R"("content": null, )")),
            "<|u|>Oslo?<|e|><|a|><tool_call>\n{\"name\": \"find\", \"arguments\": "
            "{\"city\":\"Oslo\"}}\n</tool_call><|e|>");
}

}  // namespace
}  // namespace paceline
