#include "tools/render_history.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/json_writer.h"
#include "tests/expect_error.h"
#include "tools/derive_turn_format.h"
#include "tools/history_forms.h"
#include "tools/told_calls.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLookTool =
    R"([{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters":
        {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}}])";

// A message of a history: a role's letter and its text. Letters after a text are calls, and the
// one before a result is its call.
struct Line {
  char role;  // s, u, a, or t for a result
  std::string text;
  std::string calls = {};
};
struct History {
  std::string_view name;
  std::vector<Line> lines;
};

const std::vector<History>& histories() {
  static const std::vector<History> all = {
      {"plain", {{'s', "sys1"}, {'u', "usr1"}, {'a', "ast1"}, {'u', "usr2"}}},
      {"system in the middle",
       {{'s', "sys1"}, {'u', "usr1"}, {'a', "ast1"}, {'s', "sys2"}, {'u', "usr2"}}},
      {"system only in the middle", {{'u', "usr1"}, {'a', "ast1"}, {'s', "sys2"}, {'u', "usr2"}}},
      {"system twice", {{'s', "sys1"}, {'s', "sys2"}, {'u', "usr1"}}},
      {"system last", {{'u', "usr1"}, {'a', "ast1"}, {'u', "usr2"}, {'s', "sys2"}}},
      {"system first and last",
       {{'s', "sys1"}, {'u', "usr1"}, {'a', "ast1"}, {'u', "usr2"}, {'s', "sys2"}}},
      {"system second", {{'u', "usr1"}, {'s', "sys1"}}},
      {"system after an answer", {{'s', "sys1"}, {'u', "usr1"}, {'a', "ast1"}, {'s', "sys2"}}},
      {"system alone", {{'s', "sys1"}}},
      {"assistant first", {{'a', "ast1"}, {'u', "usr1"}}},
      {"assistant after the system", {{'s', "sys1"}, {'a', "ast1"}, {'u', "usr1"}}},
      {"assistant alone", {{'a', "ast1"}}},
      {"assistant last", {{'u', "usr1"}, {'a', "ast1"}}},
      {"two of the user", {{'u', "usr1"}, {'u', "usr2"}}},
      {"three of the user",
       {{'s', "sys1"}, {'u', "usr1"}, {'u', "usr2"}, {'u', "usr3"}, {'a', "ast1"}, {'u', "usr4"}}},
      {"two of the assistant", {{'u', "usr1"}, {'a', "ast1"}, {'a', "ast2"}, {'u', "usr2"}}},
      {"a result", {{'u', "usr1"}, {'a', "", "1"}, {'t', "res1", "1"}}},
      {"two calls",
       {{'u', "usr1"},
        {'a', "", "12"},
        {'t', "res1", "1"},
        {'t', "res2", "2"},
        {'a', "ast1"},
        {'u', "usr2"}}},
      {"a call after a result",
       {{'u', "usr1"},
        {'a', "", "1"},
        {'t', "res1", "1"},
        {'a', "", "2"},
        {'t', "res2", "2"},
        {'a', "ast1"},
        {'u', "usr2"}}},
      {"the user after a result",
       {{'u', "usr1"}, {'a', "", "1"}, {'t', "res1", "1"}, {'u', "usr2"}}},
      {"system before a result",
       {{'u', "usr1"},
        {'a', "", "1"},
        {'s', "sys2"},
        {'t', "res1", "1"},
        {'a', "ast1"},
        {'u', "usr2"}}},
      {"system between results",
       {{'u', "usr1"}, {'a', "", "12"}, {'t', "res1", "1"}, {'s', "sys2"}, {'t', "res2", "2"}}},
      {"system after a result",
       {{'s', "sys1"}, {'u', "usr1"}, {'a', "", "1"}, {'t', "res1", "1"}, {'s', "sys2"}}},
      {"a call without a result", {{'u', "usr1"}, {'a', "", "1"}, {'u', "usr2"}}},
      {"a call after an answer",
       {{'u', "usr1"}, {'a', "ast1"}, {'a', "", "1"}, {'t', "res1", "1"}}},
      {"a result without a call", {{'t', "res1", "1"}, {'a', "ast1"}, {'u', "usr1"}}},
      {"nothing of the user", {{'u', ""}, {'a', "ast1"}, {'u', "usr2"}}},
      {"nothing of the user at last", {{'u', "usr1"}, {'a', "ast1"}, {'u', ""}}},
      {"nothing of the assistant", {{'u', "usr1"}, {'a', ""}, {'u', "usr2"}}},
      {"nothing of the system", {{'s', ""}, {'u', "usr1"}}},
      {"nothing of a tool", {{'u', "usr1"}, {'a', "", "1"}, {'t', "", "1"}}},
      {"all of it",
       {{'s', "sys1"},
        {'s', "sys2"},
        {'a', "ast1"},
        {'u', "usr1"},
        {'u', "usr2"},
        {'s', "sys3"},
        {'a', "ast2"},
        {'a', "", "1"},
        {'t', "res1", "1"},
        {'s', "sys4"},
        {'u', "usr3"},
        {'s', "sys5"},
        {'a', "ast3"},
        {'u', "usr4"}}},
  };
  return all;
}

std::string call_id(char call) { return std::string("callidaa") + call; }
std::string argument(char call) { return std::string("argument") + call; }

ChatMessage line_message(const Line& line, bool arguments_are_text) {
  const std::string role = line.role == 's'   ? "system"
                           : line.role == 'u' ? "user"
                           : line.role == 'a' ? "assistant"
                                              : "tool";
  std::string json;
  JsonWriter writer(json);
  writer.begin_object().member("role", role).member("content", line.text);
  if (line.role == 't') writer.member("tool_call_id", call_id(line.calls[0]));
  if (line.role == 'a' && !line.calls.empty()) {
    writer.key("tool_calls").begin_array();
    for (const char call : line.calls) {
      const std::string arguments = "{\"q\": \"" + argument(call) + "\"}";
      writer.begin_object().member("id", call_id(call)).member("type", "function");
      writer.key("function").begin_object().member("name", "look").key("arguments");
      arguments_are_text ? writer.string(arguments) : writer.raw(arguments);
      writer.end_object().end_object();
    }
    writer.end_array();
  }
  writer.end_object();
  return {.role = {}, .content = {}, .json = json};
}

bool has_calls(const History& history) {
  return std::any_of(history.lines.begin(), history.lines.end(),
                     [](const Line& line) { return !line.calls.empty(); });
}

// Whether a template shows tools: also where nothing is called, or never.
enum class ToolUse : uint8_t { with_calls, always, never };

ChatInput input_of(const History& history, const TurnFormat& format, ToolUse use) {
  ChatInput input;
  input.special_tokens = {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}};
  const bool are_text = format.calls && format.calls->message.arguments_are_text;
  for (const Line& line : history.lines) input.messages.push_back(line_message(line, are_text));
  if (use == ToolUse::never || (use == ToolUse::with_calls && !has_calls(history))) return input;
  input.tools_json = kLookTool;
  return format.calls ? input : with_told_tools(input, format.writes_system);
}

// That every text is there: those of the system anywhere, the others in order. What the assistant
// says beside a call is left out by some templates.
void expect_all(const History& history, const std::string& prompt) {
  size_t at = 0;
  for (const Line& line : history.lines) {
    for (const char call : line.role == 'a' ? line.calls : std::string()) {
      EXPECT_NE(prompt.find(argument(call)), std::string::npos) << argument(call) << "\n" << prompt;
    }
    if (line.role == 's') {
      EXPECT_NE(prompt.find(line.text), std::string::npos) << line.text << "\n" << prompt;
      continue;
    }
    const size_t found = prompt.find(line.text, at);
    EXPECT_NE(found, std::string::npos) << line.text << "\n" << prompt;
    if (found != std::string::npos) at = found + line.text.size();
  }
}

void expect_histories(const ChatTemplate& chat_template, ToolUse use = ToolUse::with_calls) {
  const TurnFormat format =
      derive_turn_format(chat_template, {{"bos_token", "<BOS>"}, {"eos_token", "<EOS>"}});
  for (const History& history : histories()) {
    SCOPED_TRACE(history.name);
    const ChatInput input = input_of(history, format, use);
    std::string plain;
    try {
      plain = chat_template.render(input);
    } catch (const Error&) {
    }
    ASSERT_NO_THROW(expect_all(history, render_history(chat_template, input)));
    if (history.name == "plain" && !plain.empty()) {
      EXPECT_EQ(render_history(chat_template, input), plain);
    }
  }
}

// What the strictest templates do: one system message, if any, at the beginning; the user and the
// assistant in turns; no empty answers; one call at a time.
constexpr std::string_view kStrict = R"({%- set ns = namespace(turn=0) -%}
{%- for m in messages -%}
{%- if m.role == 'system' -%}
{%- if not loop.first -%}{{- raise_exception('The system comes first.') -}}{%- endif -%}
{{- '<s>' + m.content -}}
{%- elif m.role == 'tool' -%}
{%- if loop.first or messages[loop.index0 - 1].role not in ('assistant', 'tool') -%}
{{- raise_exception('A result follows a call.') -}}
{%- endif -%}
{{- '<t>' + m.content -}}
{%- elif m.tool_calls -%}
{%- if m.tool_calls | length > 1 -%}{{- raise_exception('One call at a time.') -}}{%- endif -%}
{{- '<c>' + m.tool_calls[0].function.arguments | tojson -}}
{%- else -%}
{%- if (m.role == 'user') != (ns.turn % 2 == 0) -%}{{- raise_exception('In turns.') -}}{%- endif -%}
{%- if m.role == 'assistant' and not m.content -%}{{- raise_exception('Nothing.') -}}{%- endif -%}
{%- set ns.turn = ns.turn + 1 -%}
{{- '<' + m.role[0] + '>' + m.content -}}
{%- endif -%}
{%- endfor -%})";

// Writes the first system message only, and the first call.
constexpr std::string_view kForgetful = R"({%- for m in messages -%}
{%- if m.role == 'system' and not loop.first -%}{%- continue -%}{%- endif -%}
{{- '<' + m.role[0] + '>' + m.content -}}
{%- if m.tool_calls -%}{{- '<c>' + m.tool_calls[0].function.arguments | tojson -}}{%- endif -%}
{%- endfor -%})";

// Gemma's rules: no system message.
constexpr std::string_view kWithoutSystem = R"({%- for m in messages -%}
{%- if m.role == 'system' -%}{{- raise_exception('System role not supported') -}}{%- endif -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('Roles must alternate.') -}}
{%- endif -%}
{{- '<' + m.role[0] + '>' + m.content -}}
{%- endfor -%})";

std::string rendered(std::string_view source, const std::vector<ChatMessage>& messages) {
  return render_history(ChatTemplate::parse(source, "strict"), {.messages = messages});
}

TEST(RenderHistory, StrictTemplatesTakeEveryHistory) {
  for (const std::string_view source : {kStrict, kForgetful, kWithoutSystem}) {
    expect_histories(ChatTemplate::parse(source, "strict"));
  }
}

TEST(RenderHistory, WhatATemplateTakesIsNotChanged) {
  EXPECT_EQ(rendered("{%- for m in messages -%}<{{- m.role -}}>{{- m.content -}}{%- endfor -%}",
                     {{"system", "a"}, {"user", ""}, {"user", "b"}, {"system", "c"}}),
            "<system>a<user><user>b<system>c");
}

TEST(RenderHistory, ALaterSystemMessageBecomesOneOfTheUserInItsPlace) {
  EXPECT_EQ(rendered(kStrict, {{"system", "a"},
                               {"system", "b"},
                               {"user", "c"},
                               {"assistant", "d"},
                               {"system", "e"},
                               {"user", "f"}}),
            "<s>a\n\nb<u>c<a>d<u>e\n\nf");
  EXPECT_EQ(rendered(kForgetful, {{"system", "a"}, {"user", "c"}, {"system", "e"}}),
            "<s>a<u>c<u>e");
}

// As DeepSeek's older ones: calls are written where the content is null, and arguments as text.
TEST(RenderHistory, CallsThatATemplateWritesBesideNoContentAreWritten) {
  constexpr std::string_view kWithNull = R"({%- for m in messages -%}
{{- '<' + m.role[0] + '>' -}}
{%- if m.content is none -%}{{- m.tool_calls[0].function.arguments -}}
{%- else -%}{{- m.content -}}{%- endif -%}
{%- endfor -%})";
  EXPECT_EQ(rendered(kWithNull, {{"user", "a"}, line_message({'a', "", "1"}, true)}),
            R"(<u>a<a>{"q": "argument1"})");
}

TEST(RenderHistory, WithoutASystemMessageTheUsersTextBeginsWithIt) {
  EXPECT_EQ(rendered(kWithoutSystem, {{"system", "a"}, {"user", "b"}}), "<u>a\n\nb");
  EXPECT_EQ(rendered(kWithoutSystem, {{"assistant", "a"}, {"user", "b"}}), "<u><a>a<u>b");
}

TEST(RenderHistory, AnErrorThatNoOrderMendsIsTheFirstOne) {
  expect_error(ErrorCode::invalid, {"Not today."}, [] {
    rendered("{{- raise_exception('Not today.') -}}", {{"user", "a"}, {"user", "b"}});
  });
  // What is left out whatever is done is left out.
  EXPECT_EQ(rendered("{{- 'nothing' -}}", {{"user", "a"}, {"user", "b"}}), "nothing");
}

TEST(RenderHistory, LongHistoriesTakeLinearTime) {
  Messages messages;
  const std::string text(64, 'x');
  for (int i = 0; i < 50'000; ++i) {
    messages.push_back(Json(Json::Object{
        {"role", Json(std::string(i < 25'000 ? "system" : "user"))}, {"content", Json(text)}}));
  }
  const Messages ordered = with_turns_in_order(with_one_system_message(messages));
  ASSERT_EQ(ordered.size(), 2U);
  EXPECT_EQ(ordered[0].find("content")->string()->size(), 25'000 * (text.size() + 2) - 2);
}

TEST(RenderHistory, TemplatesOfPublishedModelsTakeEveryHistory) {
  const fs::path folder = fs::path(PACELINE_SOURCE_DIR).parent_path() / "shared/templates/jinja";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " isn't there";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    std::stringstream source;
    source << std::ifstream(entry.path()).rdbuf();
    // Templates of the name tool_use stand beside another one for chats without tools. One fails on
    // any tools, under transformers as well: it writes the items of a generator as JSON.
    expect_histories(ChatTemplate::parse(source.str(), name),
                     name.find("tool_use") != std::string::npos ? ToolUse::always
                     : name == "llama-cpp-deepseek-r1"          ? ToolUse::never
                                                                : ToolUse::with_calls);
  }
}

}  // namespace
}  // namespace paceline
