#include "tools/turn_grammar.h"

#include <gtest/gtest.h>

#include "grammar/json_schema.h"
#include "tests/expect_error.h"
#include "tests/tools/mini_templates.h"
#include "tests/tools/turn_matching.h"
#include "tests/tools/turn_reading.h"

namespace paceline {
namespace {

using Tokens = std::vector<std::string>;

const TurnFormat& format() {
  static const TurnFormat made = format_of(
      "{%- for m in messages %}{%- if m.role == 'assistant' %}{{- '<|a|>' }}"
      "{%- if m.reasoning_content %}{{- '<think>' + m.reasoning_content + '</think>' }}{%- endif %}"
      "{{- m.content or '' }}{%- for c in m.tool_calls or [] %}"
      "{{- '<call>{\"name\": \"' + c.function.name + '\", \"arguments\": ' + "
      "c.function.arguments|tojson + '}</call>' }}{%- endfor %}{{- '<|e|>' }}"
      "{%- else %}{{- '<|u|>' + m.content + '<|e|>' }}{%- endif %}{%- endfor %}"
      "{%- if add_generation_prompt %}{{- '<|a|>' }}{%- endif %}");
  return made;
}

const ToolSet& tools() {
  static const ToolSet made({{"add", R"({"type": "object", "properties": {"a": {"type": "integer"}},
                              "required": ["a"], "additionalProperties": false})"},
                             {"stop", ""}});
  return made;
}

std::string call(std::string_view name, std::string_view arguments) {
  return "<call>{\"name\": \"" + std::string(name) +
         "\", \"arguments\": " + std::string(arguments) + "}</call>";
}

TEST(TurnGrammar, AutomaticIsTextOrCallsOrBoth) {
  const TurnMatching turn(format(), tools(), {});
  EXPECT_TRUE(turn.accepts(""));
  EXPECT_TRUE(turn.accepts("Any <text> </call> {\"name\""));
  EXPECT_TRUE(turn.accepts(call("add", "{\"a\": 1}")));
  EXPECT_TRUE(turn.accepts("Well.\n" + call("add", "{\"a\":1}") + call("stop", "{}")));
  EXPECT_TRUE(turn.accepts("<think>No <call> yet.</think>" + call("stop", "{}")));
  EXPECT_TRUE(turn.accepts("<think>cut short"));
  EXPECT_FALSE(turn.accepts("<call>"));
  EXPECT_FALSE(turn.accepts("Well. " + call("sub", "{}")));
  EXPECT_FALSE(turn.accepts(call("add", "{}")));
  EXPECT_FALSE(turn.accepts(call("add", "{\"a\": \"1\"}")));
  EXPECT_FALSE(turn.accepts(call("stop", "{\"a\": 1}")));
  EXPECT_FALSE(turn.accepts(call("stop", "{}") + " more"));
  EXPECT_EQ(turn.num_taken("Well. <call>{\"name\": \"sub"), 23U);
}

TEST(TurnGrammar, AnInputObeysItsGrammar) {
  const ToolSet patch({{.name = "patch",
                        .parameters = R"({"type": "object", "properties": {
                            "input": {"type": "string"}}, "required": ["input"]})",
                        .input_grammar = "start: \"say \\\"\" WORD \"\\\"\\n\"\nWORD: /[a-z]+/"}});
  const TurnMatching turn(format(), patch, {});
  EXPECT_TRUE(turn.accepts(call("patch", R"({"input": "say \"hello\"\n"})")));
  EXPECT_FALSE(turn.accepts(call("patch", R"({"input": "say \"Hello\"\n"})")));
  EXPECT_FALSE(turn.accepts(call("patch", R"({"input": "say \"hello\""})")));
  EXPECT_FALSE(turn.accepts(call("patch", "{}")));
}

TEST(TurnGrammar, RequiredIsCallsFromTheStart) {
  const TurnMatching turn(format(), tools(), {.choice = ToolChoice::required});
  EXPECT_TRUE(turn.accepts("\n" + call("stop", "{}") + call("stop", "{}")));
  EXPECT_TRUE(turn.accepts("<think>Hm.</think>\n" + call("stop", "{}")));
  EXPECT_TRUE(turn.accepts(call("stop", "{}") + "<|e|>"));
  EXPECT_FALSE(turn.accepts(""));
  EXPECT_FALSE(turn.accepts("Well. " + call("stop", "{}")));
  EXPECT_FALSE(turn.accepts("<think>Hm."));
}

TEST(TurnGrammar, NamedIsOneCallOfTheTool) {
  const TurnMatching turn(format(), tools(), {.choice = ToolChoice::named, .tool_name = "stop"});
  EXPECT_TRUE(turn.accepts(call("stop", "{}")));
  EXPECT_FALSE(turn.accepts(call("add", "{\"a\": 1}")));
  EXPECT_FALSE(turn.accepts(call("stop", "{}") + call("stop", "{}")));
  expect_error(ErrorCode::invalid, {"there is no tool x"}, [] {
    TurnMatching(format(), tools(), {.choice = ToolChoice::named, .tool_name = "x"});
  });
}

TEST(TurnGrammar, NoneIsAnyText) {
  const TurnMatching turn(format(), tools(), {.choice = ToolChoice::none});
  EXPECT_TRUE(turn.accepts("<call>whatever"));
}

TEST(TurnGrammar, OneCallWhereParallelOnesAreNotAllowed) {
  const TurnMatching turn(format(), tools(), {.parallel_calls = false});
  EXPECT_TRUE(turn.accepts(call("stop", "{}")));
  EXPECT_FALSE(turn.accepts(call("stop", "{}") + call("stop", "{}")));
}

TEST(TurnGrammar, AnAnswerMayHaveAConstraintOfItsOwn) {
  const auto content = [](GrammarBuilder& builder) {
    return add_json_schema(R"({"type": "integer"})", builder);
  };
  const TurnMatching turn(format(), tools(), {.content = content});
  EXPECT_TRUE(turn.accepts("12"));
  EXPECT_TRUE(turn.accepts("<think>Any text.</think>\n\n12"));
  EXPECT_TRUE(turn.accepts(call("stop", "{}")));
  EXPECT_FALSE(turn.accepts("twelve"));
  EXPECT_FALSE(turn.accepts("12" + call("stop", "{}")));
  EXPECT_FALSE(turn.accepts("<think>12"));
  const TurnMatching alone(format(), tools(), {.choice = ToolChoice::none, .content = content});
  EXPECT_TRUE(alone.accepts("12"));
  EXPECT_FALSE(alone.accepts(call("stop", "{}")));
}

TEST(TurnGrammar, ReasoningThatThePromptHasOpenedIsOutsideOfAllElse) {
  const TurnMatching turn(format(), tools(),
                          {.choice = ToolChoice::required, .begins_in_reasoning = true});
  EXPECT_TRUE(turn.accepts("I <call> it.</think>" + call("stop", "{}")));
  EXPECT_FALSE(turn.accepts(call("stop", "{}")));
}

TEST(TurnGrammar, ArgumentsInAStringObeyTheSchema) {
  const TurnFormat quoted = format_of(calls_source(
      "", "{{- '<tc>' + f.name + ' <args>' + (f.arguments|tojson)|tojson + '</args>' }}", "", ""));
  ASSERT_TRUE(quoted.calls.has_value()) << quoted.no_calls;
  ASSERT_EQ(quoted.calls->arguments.style, ArgumentsFormat::Style::json_string);
  const ToolSet find(
      std::vector<ToolSpec>{{"find", R"({"type": "object", "required": ["city"], "properties": {
      "city": {"type": "string", "maxLength": 4, "pattern": "^[^x]*$"}, "zip": {"multipleOf": 10}},
      "additionalProperties": false})"}});
  const TurnMatching turn(quoted, find, {.choice = ToolChoice::required});
  const auto accepts = [&](std::string_view arguments) {
    return turn.accepts("<tc>find <args>" + json_quote(arguments) + "</args>");
  };
  for (const std::string_view good : {R"({"city": "Oslo"})", R"({"city":"a\"b","zip":120})",
                                      R"({"city": "été\\"})", "{\n  \"city\": \"\"\n}"}) {
    EXPECT_TRUE(accepts(good)) << good;
  }
  for (const std::string_view bad :
       {"{}", R"({"city": 5})", R"({"city": "Bergen"})", R"({"city": "x"})",
        R"({"city": "Oslo", "zip": 5})", R"({"town": "Oslo"})", R"({"city": "Oslo")"}) {
    EXPECT_FALSE(accepts(bad)) << bad;
  }
  EXPECT_FALSE(turn.accepts(R"(<tc>find <args>"{"city": "Oslo"}"</args>)"));
}

TEST(TurnGrammar, SpecialTokensAreTokensOfTheirOwn) {
  const Tokens special{"<call>", "</call>", "<think>", "</think>", "<|e|>"};
  const TurnMatching turn(format(), tools(), {}, special);
  EXPECT_TRUE(turn.accepts("<think>Hm.</think>Well." + call("stop", "{}")));
  // Free text may have any of them but the one that begins a call.
  EXPECT_TRUE(turn.accepts("Well.<|e|></call>"));
  EXPECT_FALSE(turn.accepts("Well.<call>"));
  // Their text, byte by byte, begins no call and is no part of free text.
  const TurnMatching bytes(format(), tools(), {}, {"<cal", "l>"});
  EXPECT_FALSE(bytes.accepts("Well.<call>"));
  Matcher matcher(std::make_shared<Constraint>(
      [&] {
        GrammarBuilder builder;
        const RuleId rule =
            add_turn_grammar(format(), tools(), {.special_tokens = special}, builder);
        return std::move(builder).finish(rule);
      }(),
      byte_trie()));
  for (const char c : std::string_view("<call"))
    ASSERT_TRUE(matcher.accept(static_cast<uint8_t>(c)));
  EXPECT_FALSE(matcher.accept('>'));
}

TEST(TurnGrammar, TokensThatEndTheTurnAreNotAsked) {
  const TurnFormat listed = format_of(mini_templates()[1].source);
  ASSERT_TRUE(listed.calls.has_value());
  EXPECT_EQ(listed.calls->closing, "]");
  const std::string text = "[CALLS][{\"name\": \"stop\", \"arguments\": {}, \"id\": \"abcdefgh1\"}";
  EXPECT_FALSE(TurnMatching(listed, tools(), {}).accepts(text));
  EXPECT_TRUE(TurnMatching(listed, tools(), {}).accepts(text + "]"));
  const Tokens end_tokens{"]"};
  EXPECT_TRUE(TurnMatching(listed, tools(), {.end_tokens = end_tokens}).accepts(text));
  EXPECT_FALSE(TurnMatching(listed, tools(), {})
                   .accepts("[CALLS][{\"name\": \"stop\", \"arguments\": {}, \"id\": \"short\"}]"));
}

TEST(TurnGrammar, ErrorsNameWhatIsWrong) {
  const TurnFormat none = format_of("{%- for m in messages %}{{ m.content }}{% endfor %}");
  expect_error(ErrorCode::unsupported, {"tool calls: the chat template writes no tool calls"},
               [&] { TurnMatching(none, tools(), {}); });
  EXPECT_TRUE(TurnMatching(none, tools(), {.choice = ToolChoice::none}).accepts("text"));
  const std::vector<ToolSpec> strange{
      {"f", R"({"type": "object", "properties": {"a": {"type": "strange"}}})"}};
  expect_error(ErrorCode::invalid, {"tool f: "},
               [&] { TurnMatching(format(), ToolSet(strange), {}); });
  const std::vector<ToolSpec> untyped{{"f", R"({"properties": {"a": {"type": "strange"}}})"}};
  expect_error(ErrorCode::invalid, {"tool f: schema: #/properties/a: \"type\""},
               [&] { TurnMatching(format(), ToolSet(untyped), {}); });
}

TEST(TurnGrammar, AStrictToolHasNoUnknownFormat) {
  std::vector<ToolSpec> specs{
      {"f", R"({"type": "object", "properties": {"a": {"type": "string", "format": "iban"}}})"}};
  EXPECT_NO_THROW(TurnMatching(format(), ToolSet(specs), {}));
  specs[0].is_strict = true;
  expect_error(ErrorCode::unsupported, {"tool f: schema: #/properties/a: \"format\": \"iban\""},
               [&] { TurnMatching(format(), ToolSet(specs), {}); });
}

TEST(TurnGrammar, ParametersWithoutATypeMayReferToThemselves) {
  const ToolSet tools(std::vector<ToolSpec>{
      {"f", R"({"properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}},
                "additionalProperties": false})"}});
  const TurnMatching turn(format(), tools, {.choice = ToolChoice::required});
  EXPECT_TRUE(turn.accepts(call("f", R"({"a": 1, "b": 2})")));
  EXPECT_FALSE(turn.accepts(call("f", R"({"a": 1, "b": "x"})")));
  EXPECT_FALSE(turn.accepts(call("f", "1")));
}

}  // namespace
}  // namespace paceline
