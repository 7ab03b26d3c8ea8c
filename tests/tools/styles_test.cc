// Calls in every style are derived, written, allowed and read back.
#include <gtest/gtest.h>

#include "tests/tools/mini_templates.h"
#include "tests/tools/turn_matching.h"
#include "tests/tools/turn_reading.h"

namespace paceline {
namespace {

const char* const kWeather = R"({"type": "object", "properties": {
  "city": {"type": "string"}, "days": {"type": "integer"}, "exact": {"type": "boolean"},
  "limits": {"type": "array", "items": {"type": "number"}}}, "required": ["city"]})";

std::shared_ptr<const ToolSet> weather_tools() {
  return std::make_shared<const ToolSet>(
      std::vector<ToolSpec>{{"get_weather", kWeather}, {"get_time", ""}});
}

struct GivenCall {
  std::string name;
  std::string arguments;
};

struct GivenTurn {
  std::string content;
  std::vector<GivenCall> calls;
};

// What stands behind the generation prompt.
std::string written_turn(const std::string& source, const TurnFormat& format,
                         const GivenTurn& given) {
  Json::Array calls;
  for (const GivenCall& call : given.calls) {
    const Json arguments = parse_json(call.arguments, "arguments");
    const bool are_text = format.calls->message.arguments_are_text;
    calls.push_back(Json(Json::Object{
        {"id", Json("abcde000" + std::to_string(calls.size()))},
        {"type", Json(std::string("function"))},
        {"function",
         Json(Json::Object{{"name", Json(call.name)},
                           {"arguments", are_text ? Json(to_json(arguments)) : arguments}})}}));
  }
  const Json message(Json::Object{{"role", Json(std::string("assistant"))},
                                  {"content", Json(given.content)},
                                  {"tool_calls", Json(std::move(calls))}});
  const auto chat_template = ChatTemplate::parse(source, "test");
  ChatInput input{.messages = {{"user", "Hi"}}};
  const std::string prompt = chat_template.render(input);
  input.messages.push_back({.json = to_json(message)});
  input.add_generation_prompt = false;
  const std::string text = chat_template.render(input);
  EXPECT_TRUE(text.starts_with(prompt)) << text;
  const size_t end = text.find("<|e|>", prompt.size());
  return text.substr(prompt.size(), end == std::string::npos ? end : end - prompt.size());
}

TEST(CallStyles, AreReadBackAndAllowed) {
  const auto tools = weather_tools();
  const std::vector<GivenTurn> turns{
      {"", {{"get_weather", R"({"city": "Oslo"})"}}},
      {"", {{"get_weather", R"({"city": "a \"b\"\n\\ <c> é", "days": 3, "exact": true})"}}},
      {"", {{"get_weather", R"({"city": "", "exact": false, "limits": [1.5, -2]})"}}},
      {"", {{"get_time", "{}"}}},
      {"Let me look.", {{"get_weather", R"({"city": "Rome", "days": 10})"}}},
      {"", {{"get_time", "{}"}, {"get_weather", R"({"city": "Oslo"})"}, {"get_time", "{}"}}},
  };
  for (const auto& [name, source] : mini_templates()) {
    const TurnFormat format = format_of(source);
    EXPECT_TRUE(format.calls.has_value()) << name << ": " << format.no_calls;
    if (!format.calls) continue;
    for (const GivenTurn& given : turns) {
      if (given.calls.size() > 1 && !format.calls->is_parallel) continue;
      const std::string text = written_turn(source, format, given);
      SCOPED_TRACE(name + ": " + text);
      const TurnRead read = read_turn(format, tools, {.text = text});
      TurnRead expected;
      const bool is_written = text.find(given.content) != std::string::npos;
      const bool is_analysis =
          text.find("analysis<|message|>" + given.content) != std::string::npos;
      if (is_written) (is_analysis ? expected.reasoning : expected.content) = given.content;
      for (const GivenCall& call : given.calls) {
        const bool has_id = format.calls->has(CallPiece::Kind::id);
        const std::string number = std::to_string(expected.calls.size());
        std::string id = (has_id ? "abcde000" : "made") + number;
        if (name == "an id with name and number") id = "functions." + call.name + ":" + number;
        expected.calls.push_back({call.name, to_json(parse_json(call.arguments, "given")), id});
      }
      TurnRead normal = read;
      for (CallRead& call : normal.calls) {
        call.arguments = to_json(parse_json(call.arguments, "read"));
      }
      EXPECT_EQ(normal, expected);
      EXPECT_TRUE(TurnMatching(format, *tools, {}).accepts(text));
      EXPECT_EQ(TurnMatching(format, *tools, {.choice = ToolChoice::required}).accepts(text),
                expected.content.empty());
    }
  }
}

}  // namespace
}  // namespace paceline
