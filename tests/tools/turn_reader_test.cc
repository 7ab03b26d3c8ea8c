#include "tools/turn_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/tools/mini_templates.h"
#include "tests/tools/turn_reading.h"

namespace paceline {
namespace {

// Reasoning and calls in tags.
const char* const kSource =
    "{%- for m in messages %}{%- if m.role == 'assistant' %}{{- '<|a|>' }}"
    "{%- if m.reasoning_content %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}"
    "{%- endif %}{{- m.content or '' }}{%- for c in m.tool_calls or [] %}"
    "{{- '\\n<call>{\"name\": \"' + c.function.name + '\", \"arguments\": ' + "
    "c.function.arguments|tojson + '}</call>' }}{%- endfor %}{{- '<|e|>' }}"
    "{%- else %}{{- '<|u|>' + m.content + '<|e|>' }}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|a|>' }}"
    "{%- if thinking is defined and thinking %}{{- '<think>\\n' }}{%- endif %}{%- endif %}";

std::shared_ptr<const ToolSet> two_tools() {
  return std::make_shared<const ToolSet>(
      std::vector<ToolSpec>{{"get", R"({"type": "object"})"}, {"get_time", ""}});
}

TurnRead read(std::string_view text, bool begins_in_reasoning = false) {
  static const TurnFormat format = format_of(kSource);
  return read_turn(format, two_tools(),
                   {.text = std::string(text), .begins_in_reasoning = begins_in_reasoning});
}

TEST(TurnReader, TakesReasoningContentAndCallsApart) {
  EXPECT_EQ(read("Hello <b>."), (TurnRead{"", "Hello <b>.", {}}));
  EXPECT_EQ(read("<think>\nWell.\n</think>\n\nHello."), (TurnRead{"Well.", "Hello.", {}}));
  EXPECT_EQ(read("Well.</think>Hello.", true), (TurnRead{"Well.", "Hello.", {}}));
  EXPECT_EQ(read("\n\n</think>\n\nHello.", true), (TurnRead{"", "Hello.", {}}));
  EXPECT_EQ(read("</think>\n\nHello."), (TurnRead{"", "Hello.", {}}));
  EXPECT_EQ(read("<think>cut sho"), (TurnRead{"cut sho", "", {}}));
  EXPECT_EQ(read("Wait.\n<call>{\"name\": \"get\", \"arguments\": {\"a\": [1]}}</call><|e|>"),
            (TurnRead{"", "Wait.", {{"get", R"({"a": [1]})"}}}));
  EXPECT_EQ(read("<think>t</think><call>{\"name\": \"get_time\", \"arguments\": {}}</call>\n"
                 "<call>{\"name\": \"get\", \"arguments\": {}}</call>"),
            (TurnRead{"t", "", {{"get_time", "{}"}, {"get", "{}", "made1"}}}));
}

TEST(TurnReader, ReasoningWithoutABeginningEndsAtACallToo) {
  TurnFormat format = format_of(kSource);
  format.reasoning->begin.clear();
  const std::string call = "<call>{\"name\": \"get\", \"arguments\": {}}</call>";
  const auto turn = [&](const std::string& text) {
    return read_turn(format, two_tools(), {.text = text, .begins_in_reasoning = true});
  };
  EXPECT_EQ(turn("Hm.\n" + call), (TurnRead{"Hm.", "", {{"get", "{}"}}}));
  EXPECT_EQ(turn("Hm.</think>Yes."), (TurnRead{"Hm.", "Yes.", {}}));
  EXPECT_EQ(turn("Hm.</think>\n" + call), (TurnRead{"Hm.", "", {{"get", "{}"}}}));
}

TEST(TurnReader, BlanksInFrontOfTheTokenThatEndsTheTurnAreNoContent) {
  TurnFormat format = format_of(kSource);
  format.turn_end = "\n\n<|e|>";
  EXPECT_EQ(read_turn(format, two_tools(), {.text = "Yes.\n\n"}), (TurnRead{"", "Yes.", {}}));
  EXPECT_EQ(read_turn(format, two_tools(), {.text = "Yes.\n"}), (TurnRead{"", "Yes.\n", {}}));
}

TEST(TurnReader, BlanksMayDifferFromTheTemplates) {
  EXPECT_EQ(read("\n\n<call>\n{ \"name\" : \"get\",\n\"arguments\":{\"a\":1} }\n</call>\n\n"),
            (TurnRead{"", "", {{"get", R"({"a":1})"}}}));
}

TEST(TurnReader, WhatIsNoCallIsContent) {
  for (const char* const text :
       {"<call", "a <call> b", "<call>{\"name\": \"unknown\", \"arguments\": {}}</call>",
        "<call>{\"name\": \"get\", \"arguments\": [1]}</call>", "<<call>>",
        "<call>{\"name\": \"getter\", \"arguments\": {}}</call>"}) {
    EXPECT_EQ(read(text), (TurnRead{"", text, {}}));
  }
  EXPECT_EQ(read("<call><call>{\"name\": \"get\", \"arguments\": {}}</call>"),
            (TurnRead{"", "<call>", {{"get", "{}"}}}));
}

TEST(TurnReader, ACallThatIsCutBeforeItsArgumentsIsNothing) {
  for (const char* const text :
       {"<call>", "<call>{\"name\": \"get", "<call>{\"name\": \"get_ti",
        "<call>{\"name\": \"get\", \"argu", "<call>{\"name\": \"get\", \"arguments\": "}) {
    EXPECT_EQ(read(text), TurnRead{});
    EXPECT_EQ(read(std::string("Wait.\n") + text), (TurnRead{"", "Wait.", {}}));
  }
  EXPECT_EQ(read("<call><call>"), (TurnRead{"", "<call>", {}}));
  EXPECT_EQ(read("<call>{\"name\": \"get\", \"arguments\": {}}</call>\n<cal"),
            (TurnRead{"", "", {{"get", "{}"}}}));
}

TEST(TurnReader, ATurnThatMustCallHasNoContent) {
  const TurnFormat format = format_of(kSource);
  for (const char* const text : {"<", "<call", "</call>", "words", "<call>["}) {
    const TurnText turn{.text = std::string("<think>t</think>") + text, .must_call = true};
    EXPECT_EQ(read_turn(format, two_tools(), turn), (TurnRead{"t", "", {}}));
  }
}

TEST(TurnReader, ACallThatStopsIsIncomplete) {
  EXPECT_EQ(read("<call>{\"name\": \"get\", \"arguments\": {\"a\": \"x"),
            (TurnRead{"", "", {{"get", R"({"a": "x)", "made0", false}}}));
  EXPECT_EQ(read("<call>{\"name\": \"get\", \"arguments\": {\"a\": 1]} and more"),
            (TurnRead{"", "]} and more", {{"get", R"({"a": 1)", "made0", false}}}));
  EXPECT_EQ(read("<call>{\"name\": \"get\", \"arguments\": {}} and more"),
            (TurnRead{"", "} and more", {{"get", "{}", "made0", false}}}));
}

TEST(TurnReader, MarksInsideOfArgumentsAreArguments) {
  EXPECT_EQ(read("<call>{\"name\": \"get\", \"arguments\": {\"a\": \"</call>}<think>\"}}</call>"),
            (TurnRead{"", "", {{"get", R"({"a": "</call>}<think>"})"}}}));
}

TEST(TurnReader, CallsAreContentWhenNoneAreRead) {
  const std::string text = "<call>{\"name\": \"get\", \"arguments\": {}}</call>";
  const TurnFormat format = format_of(kSource);
  const TurnRead found = read_turn(format, two_tools(), {.text = text, .reads_calls = false});
  EXPECT_EQ(found, (TurnRead{"", text, {}}));
}

TEST(TurnReader, HoldsBackNothingButTheBeginningsOfMarks) {
  const auto format = std::make_shared<const TurnFormat>(format_of(kSource));
  TurnReader reader(format, two_tools(), {.make_id = [] { return std::string("id"); }});
  const auto shown = [&](std::string_view text) {
    std::string all;
    for (const TurnEvent& event : reader.push(text)) all += event.name + event.text;
    return all;
  };
  EXPECT_EQ(shown("Hel"), "Hel");
  EXPECT_EQ(shown("lo "), "lo");
  EXPECT_EQ(shown("<c"), "");
  EXPECT_EQ(shown("ode> \n"), " <code>");
  EXPECT_EQ(shown("<call>{\"name\": \"get\", \"arguments\": "), "");
  EXPECT_EQ(shown("{\"a\": \"b"), "get{\"a\": \"b");
  EXPECT_EQ(shown("c"), "c");
  EXPECT_EQ(shown("\"}"), "\"}");
}

// Random texts of marks, parts of them and other words.
TEST(TurnReader, EventsDontDependOnWhereTheTextIsCut) {
  std::mt19937 random(5);
  std::vector<TurnFormat> formats{format_of(kSource)};
  for (const MiniTemplate& one : mini_templates()) formats.push_back(format_of(one.source));
  for (const TurnFormat& format : formats) {
    ASSERT_TRUE(format.calls.has_value()) << format.no_calls;
    const CallFormat& calls = *format.calls;
    std::vector<std::string> parts{"get",
                                   "get_time",
                                   "{}",
                                   "{\"a\": [1, \"x}\"]}",
                                   "\"{}\"",
                                   " ",
                                   "\n",
                                   "word",
                                   "1",
                                   "\"",
                                   "}",
                                   "abcde0001",
                                   "é",
                                   calls.lead,
                                   calls.between,
                                   calls.closing,
                                   calls.trigger,
                                   format.turn_end,
                                   format.content.begin,
                                   format.content.end,
                                   calls.arguments.before_key,
                                   calls.arguments.separator,
                                   calls.arguments.string_frame.open,
                                   calls.arguments.string_frame.close};
    std::string call = calls.lead;
    for (const CallPiece& piece : calls.pieces) {
      parts.push_back(piece.text);
      switch (piece.kind) {
        case CallPiece::Kind::literal:
          call += piece.text;
          break;
        case CallPiece::Kind::name:
          call += "get";
          break;
        case CallPiece::Kind::index:
          call += "0";
          break;
        case CallPiece::Kind::id:
          call += "get:0";
          break;
        case CallPiece::Kind::arguments:
          call += "{\"a\": 1}";
          break;
      }
    }
    parts.push_back(call);
    if (format.reasoning) {
      parts.push_back(format.reasoning->begin);
      parts.push_back(format.reasoning->end);
    }
    for (int i = 0; i < 300; ++i) {
      std::string text;
      const size_t num_parts = 1 + random() % 8;
      for (size_t j = 0; j < num_parts; ++j) {
        const std::string& part = parts[random() % parts.size()];
        text += random() % 4 == 0 ? part.substr(0, random() % (part.size() + 1)) : part;
      }
      read_turn(format, two_tools(),
                {.text = text, .begins_in_reasoning = format.reasoning && random() % 4 == 0});
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace paceline
