#include "tools/derive_turn_format.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "tests/tools/mini_templates.h"
#include "tests/tools/turn_matching.h"
#include "tests/tools/turn_reading.h"

namespace paceline {
namespace {

// An assistant's message with `reasoning`, and a prompt that ends in `prompt`.
TurnFormat reasoning_format(const std::string& reasoning, const std::string& prompt = "") {
  return format_of("{%- for m in messages %}{%- if m.role == 'assistant' %}{{- '<|a|>' }}" +
                   reasoning +
                   "{{- m.content or '' }}{{- '<|e|>' }}"
                   "{%- else %}{{- '<|u|>' + m.content + '<|e|>' }}{%- endif %}{%- endfor %}"
                   "{%- if add_generation_prompt %}{{- '<|a|>' }}" +
                   prompt + "{%- endif %}");
}

ReasoningFormat reasoning_of(const std::string& reasoning, const std::string& prompt = "") {
  const TurnFormat format = reasoning_format(reasoning, prompt);
  EXPECT_TRUE(format.reasoning.has_value());
  return format.reasoning.value_or(ReasoningFormat{});
}

TEST(DeriveReasoning, FromFieldsOfTheMessage) {
  const ReasoningFormat found = reasoning_of(
      "{%- if m.reasoning_content %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}"
      "{%- endif %}");
  EXPECT_EQ(found.begin, "<think>");
  EXPECT_EQ(found.end, "</think>");
  EXPECT_EQ(found.field, "reasoning_content");
  EXPECT_FALSE(found.toggle.has_value());
  EXPECT_TRUE(found.is_opened_by("<|a|><think>\n"));
  EXPECT_FALSE(found.is_opened_by("<|a|>"));
  EXPECT_FALSE(found.is_opened_by("<|a|><think></think>"));

  EXPECT_EQ(
      reasoning_of("{%- if m.thinking %}{{- '[THINK]' + m.thinking + '[/THINK]' }}{%- endif %}")
          .field,
      "thinking");
  const ReasoningFormat parts = reasoning_of(
      "{%- if m.content is not string %}{%- for p in m.content %}"
      "{%- if p.type == 'thinking' %}{{- '[THINK]' + p.thinking + '[/THINK]' }}"
      "{%- else %}{{- p.text }}{%- endif %}{%- endfor %}{{- '<|e|>' }}{%- set m = {} %}{%- endif "
      "%}");
  EXPECT_EQ(parts.field, "content");
  EXPECT_EQ(parts.end, "[/THINK]");
}

TEST(DeriveReasoning, WhereEmptyReasoningIsWrittenToo) {
  const ReasoningFormat found =
      reasoning_of("{{- '<think>\\n' + (m.reasoning_content or '') + '\\n</think>\\n' }}",
                   "{{- '<think>\\n' }}");
  EXPECT_EQ(found.begin, "<think>");
  EXPECT_EQ(found.end, "</think>");
}

TEST(DeriveReasoning, FromPromptsThatAVariableSwitches) {
  // An empty reasoning, or none; the marks stand nowhere else.
  const ReasoningFormat closed = reasoning_of(
      "",
      "{%- if not (enable_thinking|default(true)) %}{{- '<think>\\n\\n</think>\\n' }}{%- endif %}");
  EXPECT_EQ(closed.begin, "<think>");
  EXPECT_EQ(closed.end, "</think>");
  ASSERT_TRUE(closed.toggle.has_value());
  EXPECT_EQ(closed.toggle->variable, "enable_thinking");
  EXPECT_EQ(closed.toggle->on, "true");
  EXPECT_EQ(closed.toggle->off, "false");
  // An open one, or a closed one.
  const ReasoningFormat open =
      reasoning_of("", "{{- '<think>' if thinking else '<think></think>' }}");
  EXPECT_EQ(open.begin, "<think>");
  EXPECT_EQ(open.end, "</think>");
  EXPECT_EQ(open.toggle->variable, "thinking");
  // Its beginning, or its end.
  const ReasoningFormat either = reasoning_of("", "{{- '<think>' if thinking else '</think>' }}");
  EXPECT_EQ(either.begin, "<think>");
  EXPECT_EQ(either.end, "</think>");
  // A variable that leaves it out.
  EXPECT_EQ(reasoning_of("", "{{- '<t></t>' if skip_thinking else '<t>' }}").toggle->off, "true");
}

TEST(DeriveReasoning, FromAMarkAtWhichContentIsSplit) {
  const ReasoningFormat found = reasoning_of(
      "{%- if '</think>' in (m.content or '') %}"
      "{%- set m = {'content': m.content.split('</think>')[-1]} %}{%- endif %}",
      "{{- '<think>\\n' }}");
  EXPECT_EQ(found.begin, "<think>");
  EXPECT_EQ(found.end, "</think>");
  EXPECT_EQ(found.field, "");
}

TEST(DeriveReasoning, EffortIsReadWhereItChangesThePrompt) {
  const std::string written =
      "{%- if m.reasoning_content %}{{- '<t>' + m.reasoning_content + '</t>' }}{%- endif %}";
  EXPECT_FALSE(reasoning_of(written).reads_effort);
  EXPECT_TRUE(reasoning_of(written, "{{- reasoning_effort|default('medium') }}").reads_effort);
}

TEST(DeriveReasoning, EffortsAreVariablesOfTheTemplate) {
  EXPECT_EQ(reasoning_of("", "{{- '<t>' if thinking else '<t></t>' }}").kwargs_for_effort("none"),
            R"({"thinking":false})");
  EXPECT_EQ(reasoning_of("", "{{- '<t>' if thinking else '<t></t>' }}").kwargs_for_effort("low"),
            R"({"thinking":true})");
  const ReasoningFormat effort = reasoning_of(
      "{%- if m.reasoning_content %}{{- '<t>' + m.reasoning_content + '</t>' }}{%- endif %}",
      "{{- '<t></t>' if reasoning_effort == 'none' else '<t>' }}");
  ASSERT_TRUE(effort.toggle.has_value());
  EXPECT_EQ(effort.kwargs_for_effort("none"), R"({"reasoning_effort":"none"})");
  EXPECT_EQ(effort.kwargs_for_effort("low"), R"({"reasoning_effort":"low"})");
  EXPECT_EQ(ReasoningFormat{}.kwargs_for_effort("low"), "{}");
}

TEST(DeriveReasoning, IsNothingWhereThereAreNoMarks) {
  EXPECT_FALSE(reasoning_format("").reasoning.has_value());
  // Content in parts that is printed as a whole marks nothing.
  EXPECT_FALSE(format_of("{%- for m in messages %}{{ m.role ~ ': ' ~ m.content }}\n{% endfor %}")
                   .reasoning.has_value());
}

TEST(DeriveTurnFormat, MarksAroundContent) {
  const TurnFormat channels = format_of(mini_templates().back().source);
  EXPECT_EQ(channels.content.begin, "<|channel|>final<|message|>");
  EXPECT_EQ(channels.content.end, "<|return|>");
  ASSERT_TRUE(channels.reasoning.has_value());
  EXPECT_EQ(channels.reasoning->begin, "<|channel|>analysis<|message|>");
  EXPECT_EQ(channels.reasoning->end, "<|end|><|start|>a");
  ASSERT_TRUE(channels.calls.has_value());
  EXPECT_EQ(channels.calls->trigger, "to=functions.");
  const auto tools = std::make_shared<const ToolSet>(std::vector<ToolSpec>{{"f", ""}});
  EXPECT_EQ(read_turn(channels, tools,
                      {.text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>a to=functions.f"
                               "<|channel|>commentary json<|message|>{}<|call|>"}),
            (TurnRead{"Hm.", "", {{"f", "{}"}}}));
  EXPECT_EQ(read_turn(channels, tools,
                      {.text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>a"
                               "<|channel|>final<|message|>Yes.<|return|>"}),
            (TurnRead{"Hm.", "Yes.", {}}));
}

TEST(DeriveTurnFormat, SaysWhatCantBeFoundOut) {
  const auto no_calls = [](const std::string& call) {
    return format_of(calls_source("", call, "", "")).no_calls;
  };
  EXPECT_EQ(no_calls(""), "the chat template writes no tool calls");
  EXPECT_EQ(no_calls("{{- raise_exception('no tools here') }}"),
            "the chat template fails on messages with tool calls: no tools here");
  const std::string cant = "it can't be found out from the chat template ";
  EXPECT_EQ(no_calls("{{- '<c>' + f.name + '</c>' }}"), cant + "where a call's arguments stand");
  EXPECT_EQ(no_calls("{{- '<c>' + f.arguments|tojson + '</c>' }}"),
            cant + "where a call's name stands");
  EXPECT_EQ(no_calls("{{- f.name + ' ' + f.arguments|tojson }}"),
            cant + "what stands in front of a call");
  EXPECT_EQ(no_calls("{{- '<c>' + f.name }}{%- for k, v in f.arguments|items %}"
                     "{{- '<' + k + '>' + v + '</' + k + '>' }}{%- endfor %}{{- '</c>' }}"),
            cant + "where the last argument ends");
}

TEST(DeriveTurnFormat, TemplatesThatTakeTooLongAreNoError) {
  const TurnFormat format =
      format_of("{%- for i in range(9999) %}{%- for j in range(999) %}{%- endfor %}{%- endfor %}");
  EXPECT_FALSE(format.calls.has_value());
  EXPECT_NE(format.no_calls.find("steps"), std::string::npos) << format.no_calls;
}

TEST(DeriveTurnFormat, AnyDamageToATemplateIsSafe) {
  std::mt19937 random(3);
  const std::vector<MiniTemplate> templates = mini_templates();
  size_t num_parsed = 0;
  for (int i = 0; i < 400; ++i) {
    std::string source = templates[random() % templates.size()].source;
    const size_t at = random() % source.size();
    if (random() % 2 == 0) {
      source.erase(at, 1 + random() % 20);
    } else {
      source.insert(at, source.substr(random() % source.size(), random() % 20));
    }
    std::optional<ChatTemplate> damaged;
    try {
      damaged = ChatTemplate::parse(source, "damaged");
    } catch (const Error&) {
      continue;
    }
    ++num_parsed;
    const TurnFormat format = derive_turn_format(*damaged);
    EXPECT_EQ(format.calls.has_value(), format.no_calls.empty());
  }
  EXPECT_GT(num_parsed, 100U);
}

TEST(DeriveTurnFormat, TellsHowMessagesMustBe) {
  using Content = CallMessageShape::Content;
  const auto shape = [](const std::string& condition, const std::string& arguments) {
    const TurnFormat format = format_of(chat_source(
        "{%- if " + condition +
        " %}{%- for c in m.tool_calls %}{{- '<c>' + c.function.name + ' ' + " + arguments +
        " + '</c>' }}{%- endfor %}{%- else %}{{- m.content or '' }}{%- endif %}"
        "{{- '<|e|>' }}"));
    EXPECT_TRUE(format.calls.has_value()) << format.no_calls;
    return format.calls ? format.calls->message : CallMessageShape{};
  };
  EXPECT_EQ(shape("m.tool_calls", "c.function.arguments|tojson").no_content, Content::empty);
  EXPECT_EQ(shape("m.content is none", "c.function.arguments|tojson").no_content, Content::null);
  EXPECT_EQ(shape("m.content is not defined", "c.function.arguments|tojson").no_content,
            Content::absent);
  EXPECT_FALSE(shape("m.tool_calls", "c.function.arguments|tojson").arguments_are_text);
  EXPECT_TRUE(shape("m.tool_calls", "c.function.arguments").arguments_are_text);
}

TEST(DeriveTurnFormat, AnIdThatIsNotAlwaysWrittenIsOptional) {
  const TurnFormat format = format_of(chat_source(
      "{{- m.content or '' }}{%- set is_last = loop.last %}{%- for c in m.tool_calls or [] %}"
      "{{- '<c>{\"name\": \"' + c.function.name + '\", \"arguments\": ' + "
      "c.function.arguments|tojson }}{%- if not is_last %}{{- ', \"id\": \"' + c.id + '\"' }}"
      "{%- endif %}{{- '}</c>' }}{%- endfor %}{{- '<|e|>' }}"));
  ASSERT_TRUE(format.calls.has_value()) << format.no_calls;
  ASSERT_TRUE(format.calls->has(CallPiece::Kind::id));
  const auto tools = std::make_shared<const ToolSet>(std::vector<ToolSpec>{{"f", ""}});
  EXPECT_EQ(read_turn(format, tools, {.text = "<c>{\"name\": \"f\", \"arguments\": {}}</c>"}),
            (TurnRead{"", "", {{"f", "{}"}}}));
  EXPECT_EQ(read_turn(format, tools,
                      {.text = "<c>{\"name\": \"f\", \"arguments\": {}, \"id\": \"x7\"}</c>"}),
            (TurnRead{"", "", {{"f", "{}", "x7"}}}));
}

TEST(DeriveTurnFormat, AnIdMayHaveTheName) {
  const TurnFormat format = format_of(calls_source(
      "<|calls|>", "{{- '<|id|>' + c.id + '<|args|>' + f.arguments|tojson }}", "", "<|end|>"));
  ASSERT_TRUE(format.calls.has_value()) << format.no_calls;
  EXPECT_TRUE(format.calls->name_is_in_id);
  const auto tools =
      std::make_shared<const ToolSet>(std::vector<ToolSpec>{{"get", ""}, {"get_it", ""}});
  const std::string text = "<|calls|><|id|>functions.get_it:1<|args|>{}<|end|>";
  EXPECT_EQ(read_turn(format, tools, {.text = text}),
            (TurnRead{"", "", {{"get_it", "{}", "functions.get_it:1"}}}));
  const TurnMatching turn(format, *tools, {});
  EXPECT_TRUE(turn.accepts(text));
  EXPECT_TRUE(turn.accepts("<|calls|><|id|>get<|args|>{}<|end|>"));
  EXPECT_FALSE(turn.accepts("<|calls|><|id|>functions.get_them:1<|args|>{}<|end|>"));
}

}  // namespace
}  // namespace paceline
