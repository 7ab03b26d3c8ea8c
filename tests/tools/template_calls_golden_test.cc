// Tool calls that real templates write are read back as they were given, and are what the grammar
// of the turn allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "base/mapped_file.h"
#include "tests/tools/turn_matching.h"
#include "tests/tools/turn_reading.h"
#include "tools/text_units.h"
#include "tools/told_calls.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

const fs::path kTemplates = fs::path(PACELINE_SOURCE_DIR).parent_path() / "shared/templates";
const std::vector<std::pair<std::string, std::string>> kSpecialTokens{{"bos_token", "<BOS>"},
                                                                      {"eos_token", "<EOS>"}};

// The templates from which no calls can be derived, and why: their conversations tell of calls.
// This list may only become shorter.
const std::map<std::string, std::string> kWithoutCalls{
    {"HuggingFaceTB-SmolLM3-3B", "writes no tool calls"},
    {"Kimi-K2-Instruct", "fails on messages with tool calls: "},  // it appends to a list
    {"LFM2.5-Instruct", "writes no tool calls"},
    {"google-gemma-2-2b-it", "writes no tool calls"},
    {"ibm-granite-granite-3.3-2B-Instruct", "writes no tool calls"},
    {"llama-cpp-rwkv-world", "writes no tool calls"},
    {"microsoft-Phi-3.5-mini-instruct", "writes no tool calls"},
};

struct Call {
  std::string name;
  Json::Object arguments;
  std::string id;
};

// A conversation up to a turn with calls, and that turn.
struct Case {
  std::string name;
  ChatInput before;
  std::string content;
  std::vector<Call> calls;
  std::vector<ToolSpec> tools;
};

Case case_of(const Json& conversation) {
  Case found{.name = conversation.find("conv")->as_string("conv")};
  if (const Json* tools = conversation.find_value("tools")) {
    found.before.tools_json = to_json(*tools);
    for (const Json& tool : tools->as_array("tools")) {
      const Json& function = *tool.find("function");
      found.tools.push_back(
          {function.find("name")->as_string("name"), to_json(*function.find("parameters"))});
    }
  }
  found.before.special_tokens = kSpecialTokens;
  for (const Json& message : conversation.find("messages")->as_array("messages")) {
    const Json* calls = message.find("tool_calls");
    if (calls == nullptr) {
      found.before.messages.push_back({.json = to_json(message)});
      continue;
    }
    found.content = message.find("content")->as_string("content");
    for (const Json& call : calls->as_array("tool_calls")) {
      const Json& function = *call.find("function");
      found.calls.push_back({function.find("name")->as_string("name"),
                             function.find("arguments")->as_object("arguments"),
                             call.find("id")->as_string("id")});
    }
    break;
  }
  if (found.tools.empty()) found.tools.push_back({found.calls[0].name, R"({"type":"object"})"});
  return found;
}

std::vector<Case> cases_with_calls() {
  std::vector<Case> cases;
  std::ifstream file(kTemplates / "conversations.jsonl");
  for (std::string line; std::getline(file, line);) {
    if (line.find("tool_calls") == std::string::npos) continue;
    cases.push_back(case_of(parse_json(line, "conversation")));
  }
  return cases;
}

// The message in the shape that the template asks for.
Json message_of(const Case& one, const CallFormat& format) {
  using Content = CallMessageShape::Content;
  Json::Object message{{"role", Json(std::string("assistant"))}};
  if (!one.content.empty() || format.message.no_content == Content::empty) {
    message.emplace_back("content", Json(one.content));
  } else if (format.message.no_content == Content::null) {
    message.emplace_back("content", Json());
  }
  Json::Array calls;
  for (const Call& call : one.calls) {
    const Json arguments(call.arguments);
    const Json written = format.message.arguments_are_text ? Json(to_json(arguments)) : arguments;
    const Json function(Json::Object{{"name", Json(call.name)}, {"arguments", written}});
    calls.push_back(Json(Json::Object{
        {"id", Json(call.id)}, {"type", Json(std::string("function"))}, {"function", function}}));
    if (!format.is_parallel) break;
  }
  message.emplace_back("tool_calls", Json(std::move(calls)));
  return Json(std::move(message));
}

// The turn as the model would write it behind the generation prompt; nothing where the template
// fails, or doesn't write the calls.
std::optional<TurnText> turn_of(const ChatTemplate& chat_template, const Case& one,
                                const TurnFormat& format) {
  try {
    const auto render = [&](const ChatInput& input) {
      return chat_template.render(format.tells_calls ? with_told_tools(input, format.writes_system)
                                                     : input);
    };
    const std::string prompt = render(one.before);
    ChatInput input = one.before;
    input.add_generation_prompt = false;
    input.messages.push_back({.json = to_json(message_of(one, *format.calls))});
    const std::string rendered = render(input);
    const bool goes_on = rendered.starts_with(prompt);
    TurnText turn{
        .text = rendered.substr(goes_on ? prompt.size() : common_prefix(rendered, prompt).size())};
    turn.begins_in_reasoning =
        goes_on && format.reasoning && format.reasoning->is_opened_by(prompt);
    const size_t name = turn.text.find(one.calls[0].name);
    if (name == std::string::npos) return std::nullopt;
    // The token that ends the turn isn't in it, nor what some templates write behind it.
    const std::string_view end = trimmed(format.turn_end);
    if (!end.empty()) turn.text.resize(std::min(turn.text.find(end, name), turn.text.size()));
    return turn;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string in_order(std::string_view json) {
  Json::Object members = parse_json(json, "arguments").as_object("arguments");
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return to_json(Json(std::move(members)));
}

TurnRead expected(const Case& one, const TurnText& turn, const CallFormat& format) {
  TurnRead read;
  if (turn.text.find(one.content) != std::string::npos) read.content = one.content;
  for (const Call& call : one.calls) {
    std::string id = "made" + std::to_string(read.calls.size());
    if (turn.text.find(call.id) != std::string::npos) id = call.id;
    if (format.made_id_prefix) {
      id = *format.made_id_prefix + call.name + ":" + std::to_string(read.calls.size());
    }
    read.calls.push_back({.name = call.name,
                          .arguments = in_order(to_json(Json(call.arguments))),
                          .id = std::move(id)});
    if (!format.is_parallel) break;
  }
  return read;
}

// The texts of the format that would be special tokens.
std::vector<std::string> tags_of(const TurnFormat& format) {
  const CallFormat& calls = *format.calls;
  std::string text = calls.lead + calls.between + calls.closing + format.turn_end;
  for (const CallPiece& piece : calls.pieces) text += " " + piece.text;
  text += calls.arguments.string_frame.open + calls.arguments.string_frame.close;
  text += calls.arguments.before_key;
  if (format.reasoning) text += format.reasoning->begin + format.reasoning->end;
  std::vector<std::string> tags;
  for (const std::string_view unit : text_units(text)) {
    if (is_tag(unit)) tags.emplace_back(unit);
  }
  return tags;
}

void expect_allowed(const TurnFormat& format, const Case& one, const TurnText& turn) {
  const ToolSet tools(one.tools);
  const std::vector<std::string> end_tokens{std::string(trimmed(format.turn_end))};
  for (const std::vector<std::string>& special : {std::vector<std::string>{}, tags_of(format)}) {
    TurnGrammarOptions options{.begins_in_reasoning = turn.begins_in_reasoning,
                               .end_tokens = end_tokens};
    EXPECT_TRUE(TurnMatching(format, tools, options, special).accepts(turn.text));
    if (turn.text.find(one.content) != std::string::npos && !one.content.empty()) continue;
    options.choice = ToolChoice::required;
    EXPECT_TRUE(TurnMatching(format, tools, options, special).accepts(turn.text));
  }
}

void expect_refused(const ChatTemplate& chat_template, const TurnFormat& format, Case one,
                    const std::function<void(Call&)>& spoil) {
  spoil(one.calls[0]);
  const std::optional<TurnText> turn = turn_of(chat_template, one, format);
  ASSERT_TRUE(turn.has_value());
  const ToolSet tools(one.tools);
  for (const ToolChoice choice : {ToolChoice::automatic, ToolChoice::required}) {
    const TurnGrammarOptions options{.choice = choice,
                                     .begins_in_reasoning = turn->begins_in_reasoning};
    EXPECT_FALSE(TurnMatching(format, tools, options).accepts(turn->text)) << turn->text;
  }
}

// False where the template doesn't write the turn.
bool expect_calls(const ChatTemplate& chat_template, const TurnFormat& format, const Case& one) {
  const std::optional<TurnText> turn = turn_of(chat_template, one, format);
  if (!turn) return false;
  SCOPED_TRACE(turn->text);
  TurnRead read = read_turn(format, std::make_shared<const ToolSet>(one.tools), *turn);
  expect_cuts_show_no_marks(format, std::make_shared<const ToolSet>(one.tools), *turn);
  for (CallRead& call : read.calls) call.arguments = in_order(call.arguments);
  EXPECT_EQ(read, expected(one, *turn, *format.calls));
  expect_allowed(format, one, *turn);
  if (one.name != "tool_call_result") return true;
  expect_refused(chat_template, format, one, [](Call& call) { call.name += "s"; });
  expect_refused(chat_template, format, one,
                 [](Call& call) { call.arguments = {call.arguments[1]}; });
  expect_refused(chat_template, format, one,
                 [](Call& call) { call.arguments[1].second = Json(std::string("two")); });
  return true;
}

TEST(TemplateCallsGolden, AreReadBackAsTheyWereGiven) {
  if (!fs::exists(kTemplates / "jinja")) GTEST_SKIP() << kTemplates << " isn't there";
  const std::vector<Case> cases = cases_with_calls();
  ASSERT_GE(cases.size(), 4U);
  size_t num_turns = 0;
  std::map<std::string, size_t> num_told;
  for (const auto& entry : fs::directory_iterator(kTemplates / "jinja")) {
    const std::string name = entry.path().stem().string();
    const auto chat_template = ChatTemplate::parse(read_text_file(entry.path(), 1 << 20), name);
    TurnFormat format = derive_turn_format(chat_template, kSpecialTokens);
    const auto known = kWithoutCalls.find(name);
    EXPECT_EQ(format.calls.has_value(), known == kWithoutCalls.end()) << name << format.no_calls;
    if (!format.calls) {
      if (known == kWithoutCalls.end()) continue;
      EXPECT_NE(format.no_calls.find(known->second), std::string::npos) << format.no_calls;
      format.calls = told_call_format();
      format.tells_calls = true;
      num_told[name] = 0;
    }
    for (const Case& one : cases) {
      SCOPED_TRACE(name + " " + one.name);
      if (!expect_calls(chat_template, format, one)) continue;
      format.tells_calls ? ++num_told[name] : ++num_turns;
    }
  }
  EXPECT_GE(num_turns, 123U);
  for (const auto& [name, count] : num_told) EXPECT_GE(count, 2U) << name;
}

}  // namespace
}  // namespace paceline
