// Conversations become the same tokens in training as in a request, with every chat template.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "protocol/plain_requests.h"
#include "tests/dataset/training_files.h"
#include "tests/expect_error.h"
#include "tests/tools/mini_templates.h"
#include "text/chat_prompt.h"
#include "text/chat_turns.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNow = "2026-03-07T12:00:00";

const std::string kTools =
    R"([{"type": "function", "function": {"name": "weather", "description": "The weather.",)"
    R"( "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days":)"
    R"( {"type": "integer"}}, "required": ["city"]}}}, {"type": "function", "function": {"name":)"
    R"( "add", "description": "Adds.", "parameters": {"type": "object", "properties": {"list":)"
    R"( {"type": "array", "items": {"type": "number"}}}}}}])";

std::string call(std::string_view id, std::string_view name, std::string_view arguments) {
  return fmt::format(
      R"({{"id": "{}", "type": "function", "function": {{"name": "{}", "arguments": {}}}}})", id,
      name, arguments);
}

const std::string kOslo = call("abc123def", "weather", R"("{\"city\": \"Oslo\", \"days\": 2}")");
const std::string kSum = call("xyz789ghi", "add", R"("{\"list\": [1, 2.5, -3]}")");

// Messages, tools apart.
const std::vector<std::string> kConversations = {
    R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])",
    R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},)"
    R"( {"role": "assistant", "content": "Hello"}])",
    // A call alone, its content null; and one that is absent.
    fmt::format(
        R"([{{"role": "user", "content": "Oslo?"}}, {{"role": "assistant", "content": null,)"
        R"( "tool_calls": [{}]}}])",
        kOslo),
    fmt::format(R"([{{"role": "user", "content": "Oslo?"}}, {{"role": "assistant", "tool_calls":)"
                R"( [{}]}}])",
                kOslo),
    // A call, its result, an answer; the system prompt and the question in parts.
    fmt::format(
        R"([{{"role": "developer", "content": [{{"type": "text", "text": "Be"}}, {{"type": "text",)"
        R"( "text": "brief."}}]}}, {{"role": "user", "content": [{{"type": "text", "text": "Oslo?"}}]}},)"
        R"( {{"role": "assistant", "content": "I look.", "tool_calls": [{}]}}, {{"role": "tool",)"
        R"( "tool_call_id": "abc123def", "content": "{{\"degrees\": 7}}"}}, {{"role": "assistant",)"
        R"( "content": "7 degrees."}}])",
        kOslo),
    // Two calls at once, two results, and another turn.
    fmt::format(
        R"([{{"role": "user", "content": "Oslo, and 1 + 2.5 - 3?"}}, {{"role": "assistant",)"
        R"( "content": "", "tool_calls": [{}, {}]}}, {{"role": "tool", "tool_call_id": "abc123def",)"
        R"( "name": "weather", "content": "7"}}, {{"role": "tool", "tool_call_id": "xyz789ghi",)"
        R"( "name": "add", "content": [{{"type": "text", "text": "0.5"}}]}}, {{"role": "assistant",)"
        R"( "content": "7 and 0.5."}}, {{"role": "user", "content": "Thanks"}}, {{"role": "assistant",)"
        R"( "content": "Welcome"}}])",
        kOslo, kSum),
    // Reasoning, with and without calls.
    R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello",)"
    R"( "reasoning_content": "They greet."}])",
    fmt::format(
        R"([{{"role": "user", "content": "Oslo?"}}, {{"role": "assistant", "content": null,)"
        R"( "reasoning": "I look it up.", "tool_calls": [{}]}}, {{"role": "tool", "tool_call_id":)"
        R"( "abc123def", "content": "7"}}, {{"role": "assistant", "content": "7 degrees.",)"
        R"( "reasoning_content": "Cool."}}])",
        kOslo),
    // From before tool_calls, and a refusal.
    R"([{"role": "user", "content": "Oslo?"}, {"role": "assistant", "content": null,)"
    R"( "function_call": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}}])",
    R"([{"role": "user", "content": "Oslo?"}, {"role": "assistant", "content": null, "refusal":)"
    R"( "I won't."}])",
};

struct NamedSource {
  std::string name;
  std::string source;
};

std::vector<NamedSource> template_sources() {
  std::vector<NamedSource> sources;
  for (const auto& mini : mini_templates()) {
    sources.push_back({std::string(mini.name), std::string(mini.source)});
  }
  const fs::path folder = fs::path(PACELINE_SOURCE_DIR).parent_path() / "shared/templates/jinja";
  if (!fs::exists(folder)) return sources;
  for (const auto& entry : fs::directory_iterator(folder)) {
    sources.push_back(
        {entry.path().filename().string(), read_text_file(entry.path(), size_t{1} << 20)});
  }
  return sources;
}

class RenderingTest : public DatasetTest {
 protected:
  // What /apply-template answers, or nothing where the template raises an error.
  std::optional<RenderedChat> served(const ChatRenderer& renderer, const std::string& body) const {
    TemplateRequest request = parse_template_request(parse_json(body, "body"));
    request.input.now = kNow;
    try {
      return render_chat(renderer, request.input);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // The tokens of the same conversation as an example, or why there are none.
  std::optional<std::vector<int32_t>> trained(const ChatTemplate& chat_template,
                                              const std::string& line, std::string& fault) const {
    const DatasetModel model{tokenizer(), &chat_template, end_of_text(tokenizer())};
    const DatasetOptions options{.max_seq_length = 100'000, .now = std::string(kNow)};
    try {
      return read("a.jsonl", line, options, model).examples.at(0).tokens;
    } catch (const Error& error) {
      fault = error.what();
      return std::nullopt;
    }
  }
};

TEST_F(RenderingTest, TrainsOnTheTokensThatARequestHas) {
  size_t num_compared = 0;
  for (const auto& [name, source] : template_sources()) {
    SCOPED_TRACE(name);
    const ChatTemplate chat_template = ChatTemplate::parse(source, name);
    const ChatTurns turns(chat_template, tokenizer());
    const ChatRenderer renderer{
        .chat_template = &chat_template, .tokenizer = &tokenizer(), .turns = &turns};
    for (const std::string& messages : kConversations) {
      for (const std::string& tools : {std::string("[]"), kTools}) {
        const std::string line = fmt::format(R"({{"messages": {}, "tools": {}}})", messages, tools);
        SCOPED_TRACE(line);
        const std::string body = fmt::format(
            R"({{"messages": {}, "tools": {}, "add_generation_prompt": false}})", messages, tools);
        const std::optional<RenderedChat> chat = served(renderer, body);
        std::string fault;
        const auto tokens = trained(chat_template, line, fault);
        if (tokens) {
          ++num_compared;
          ASSERT_TRUE(chat.has_value());
          EXPECT_EQ(*tokens, tokenizer().encode(chat->text, {.plain = chat->typed}));
          continue;
        }
        // The template fails on it, or leaves the call out.
        EXPECT_TRUE(!chat || fault.find("leaves this call out") != std::string::npos) << fault;
      }
    }
  }
  EXPECT_GE(num_compared, 300u);
}

// What is learnt of a chat with calls: what the assistant says, its calls included.
constexpr std::string_view kCallingChat =
    R"({"messages": [{"role": "user", "content": "zebra"}, {"role": "assistant", "content": null,)"
    R"( "tool_calls": [{"id": "abc123def", "type": "function", "function": {"name": "weather",)"
    R"( "arguments": "{\"city\": \"Oslo\"}"}}]}, {"role": "tool", "tool_call_id": "abc123def",)"
    R"( "name": "weather", "content": "yonder"}, {"role": "assistant", "content": "apple"}, {"role":)"
    R"( "user", "content": "violin"}, {"role": "assistant", "content": null, "tool_calls": [{"id":)"
    R"( "xyz789ghi", "type": "function", "function": {"name": "add", "arguments": "{\"list\":)"
    R"( [41]}"}}]}, {"role": "tool", "tool_call_id": "xyz789ghi", "name": "add", "content":)"
    R"( "quartz"}, {"role": "assistant", "content": "banana"}], "tools": )";

// They write the thoughts of the first call, which are empty, only until the second question comes;
// can't write tools; or want a token that the bundled tokenizer hasn't.
const std::vector<std::string> kNotLearnt = {"Qwen3.5-4B.jinja", "StepFun3.5-Flash.jinja",
                                             "llama-cpp-deepseek-r1.jinja",
                                             "meetkai-functionary-medium-v3.1.jinja"};

TEST_F(RenderingTest, LearnsTurnsWithTheirCalls) {
  for (const auto& [name, source] : template_sources()) {
    if (std::count(kNotLearnt.begin(), kNotLearnt.end(), name) > 0) continue;
    SCOPED_TRACE(name);
    const ChatTemplate chat_template = ChatTemplate::parse(source, name);
    const DatasetModel model{tokenizer(), &chat_template, end_of_text(tokenizer())};
    const DatasetOptions options{.loss_tokens = LossTokens::assistant_turns,
                                 .max_seq_length = 100'000,
                                 .now = std::string(kNow)};
    const std::string learnt = learnt_text(
        read("a.jsonl", std::string(kCallingChat) + kTools + "}", options, model).examples.at(0));
    for (const char* own : {"weather", "Oslo", "apple", "add", "41", "banana"}) {
      EXPECT_THAT(learnt, testing::HasSubstr(own));
    }
    for (const char* other : {"zebra", "yonder", "violin", "quartz"}) {
      EXPECT_THAT(learnt, testing::Not(testing::HasSubstr(other)));
    }
  }
}

TEST_F(RenderingTest, NamesACallThatTheTemplateLeavesOut) {
  const auto chat_template = ChatTemplate::parse(
      chat_source(
          "{{- m.content or '' }}{%- if m.tool_calls %}{%- set f = m.tool_calls[0].function %}"
          "{{- '[CALL]' + f.name + f.arguments|tojson }}{%- endif %}{{- '<|e|>' }}"),
      "single");
  std::string fault;
  EXPECT_FALSE(
      trained(chat_template,
              fmt::format(R"({{"messages": [{{"role": "user", "content": "Oslo?"}}, {{"role":)"
                          R"( "assistant", "content": null, "tool_calls": [{}, {}]}}]}})",
                          kOslo, kSum),
              fault));
  EXPECT_THAT(fault, testing::HasSubstr("a.jsonl:1: messages[1].tool_calls[1]: the chat template "
                                        "leaves this call out"));
}

// The result of the first call stands before the second one, inside the assistant's message.
TEST_F(RenderingTest, NamesAMessageInsideATurn) {
  const auto chat_template = ChatTemplate::parse(
      "{%- for m in messages %}{%- set at = loop.index0 %}{%- if m.role == 'assistant' %}"
      "{{- '<|a|>' + (m.content or '') }}{%- for c in m.tool_calls or [] %}"
      "{{- '[CALL]' + c.function.name + c.function.arguments|tojson + '[END]' }}"
      "{%- if at + loop.index < messages|length %}{{- messages[at + loop.index].content }}{%- "
      "endif %}"
      "{%- endfor %}{{- '<|e|>' }}{%- elif m.role != 'tool' %}{{- '<|u|>' + m.content + '<|e|>' }}"
      "{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<|a|>' }}{%- endif %}",
      "inside");
  const DatasetModel model{tokenizer(), &chat_template, end_of_text(tokenizer())};
  const std::string line = fmt::format(R"({{"messages": {}}})", kConversations.at(5));
  expect_error(ErrorCode::invalid,
               {"messages: the chat template writes the message of another inside"},
               [&] { read("a.jsonl", line, {.loss_tokens = LossTokens::assistant_turns}, model); });
}

}  // namespace
}  // namespace paceline
