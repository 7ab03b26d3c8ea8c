#include "tools/template_probe.h"

#include <fmt/format.h>

#include "base/json_writer.h"
#include "tools/text_units.h"

namespace paceline {
namespace {

constexpr size_t kMaxRenders = 160;
constexpr std::string_view kNow = "2026-01-15T12:00:00";

Json text(std::string_view value) { return Json(std::string(value)); }

Json object_of(std::initializer_list<std::pair<std::string_view, Json>> members) {
  Json::Object object;
  for (const auto& [key, value] : members) object.emplace_back(std::string(key), value);
  return Json(std::move(object));
}

Json message_of(std::string_view role, const std::string& content) {
  return object_of({{"role", text(role)}, {"content", Json(content)}});
}

Json call_json(const ProbeCall& call, bool arguments_are_text) {
  const Json arguments(call.arguments);
  const Json function =
      object_of({{"name", Json(call.name)},
                 {"arguments", arguments_are_text ? Json(to_json(arguments)) : arguments}});
  return object_of({{"id", Json(call.id)}, {"type", text("function")}, {"function", function}});
}

Json assistant_message(const ProbeTurn& turn) {
  Json::Object message{{"role", text("assistant")}};
  if (turn.content) message.emplace_back("content", *turn.content);
  for (const Json::Member& member : turn.more) message.push_back(member);
  if (!turn.calls.empty()) {
    Json::Array calls;
    for (const ProbeCall& call : turn.calls) {
      calls.push_back(call_json(call, turn.arguments_are_text));
    }
    message.emplace_back("tool_calls", Json(std::move(calls)));
  }
  return Json(std::move(message));
}

Json tool_of(const ProbeCall& call) {
  Json::Object properties;
  for (const auto& [key, value] : call.arguments) {
    properties.emplace_back(key, object_of({{"type", text("string")}, {"description", text("d")}}));
  }
  const Json parameters = object_of({{"type", text("object")},
                                     {"properties", Json(std::move(properties))},
                                     {"required", Json(Json::Array{})}});
  const Json function = object_of(
      {{"name", Json(call.name)}, {"description", text("d")}, {"parameters", parameters}});
  return object_of({{"type", text("function")}, {"function", function}});
}

// A word that the template doesn't contain, as the beginning of all marks.
std::string prefix_for(std::string_view source) {
  for (char last = 'a'; last <= 'z'; ++last) {
    std::string prefix = std::string("zqx") + last;
    if (source.find(prefix) == std::string_view::npos) return prefix;
  }
  return "zqxw";
}

}  // namespace

void not_derivable(std::string_view what) {
  throw Error(ErrorCode::unsupported,
              fmt::format("it can't be found out from the chat template {}", what));
}

TemplateProbe::TemplateProbe(const ChatTemplate& chat_template, SpecialTokens special_tokens)
    : template_(chat_template),
      special_tokens_(std::move(special_tokens)),
      prefix_(prefix_for(chat_template.source())),
      user_(mark("user")),
      content_(mark("content")),
      result_(mark("result")) {
  Json::Array tools;
  for (size_t i = 0; i < 2; ++i) tools.push_back(tool_of(call(i)));
  tools_json_ = to_json(Json(std::move(tools)));
  // Some templates fail on any tools, and write calls all the same.
  if (!whole_prompt({})) tools_json_.clear();
  const auto unasked = behind_user(render({message_of("user", user_)}, {}, false));
  always_prompts_ = unasked && unasked == generation_prompt();
}

// Ids of 9 letters and digits: templates of some models refuse others.
ProbeCall TemplateProbe::call(size_t index) const {
  const char letter = static_cast<char>('a' + index);
  const std::string first = mark("value") + letter + 'b';
  const std::string second = mark("value") + letter + 'a';
  return {.name = mark("tool") + letter,
          .id = fmt::format("{}9id{}{}", prefix_, letter, index + 3),
          .arguments = {{mark("key") + letter + 'b', Json(first)},
                        {mark("key") + letter + 'a', Json(second)}}};
}

std::optional<std::string> TemplateProbe::render(Json::Array messages, const Json::Object& kwargs,
                                                 bool add_generation_prompt) {
  if (++num_renders_ > kMaxRenders) {
    throw Error(ErrorCode::exhausted, "the chat template needs too many renderings");
  }
  ChatInput input;
  for (const Json& message : messages) input.messages.push_back({.json = to_json(message)});
  input.tools_json = tools_json_;
  input.kwargs_json = to_json(Json(kwargs));
  input.add_generation_prompt = add_generation_prompt;
  input.special_tokens = special_tokens_;
  input.now = std::string(kNow);
  try {
    return template_.render(input);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::exhausted) throw;
    fault_ = error.what();
    return std::nullopt;
  }
}

std::optional<std::string> TemplateProbe::behind_user(std::optional<std::string> rendered) const {
  if (!rendered) return std::nullopt;
  const size_t at = rendered->rfind(user_);
  if (at == std::string::npos) return std::nullopt;
  return rendered->substr(at + user_.size());
}

std::optional<std::string> TemplateProbe::turn(const ProbeTurn& turn, const ProbeContext& context) {
  Json::Array messages{message_of("user", user_), assistant_message(turn)};
  if (context.is_answered) {
    for (const ProbeCall& call : turn.calls) {
      messages.push_back(object_of({{"role", text("tool")},
                                    {"content", Json(result_)},
                                    {"name", Json(call.name)},
                                    {"tool_call_id", Json(call.id)}}));
    }
  }
  if (context.is_followed) {
    messages.push_back(message_of("user", mark("later")));
    messages.push_back(message_of("assistant", mark("last")));
  }
  std::optional<std::string> text = behind_user(render(std::move(messages), context.kwargs, false));
  if (text && always_prompts_) text = without_prompt(*std::move(text), context.kwargs);
  return text;
}

std::optional<std::string> TemplateProbe::generation_prompt(const Json::Object& kwargs) {
  return behind_user(whole_prompt(kwargs));
}

PlainTurn TemplateProbe::plain_turn(const Json::Object& kwargs) {
  PlainTurn plain{.prompt = generation_prompt(kwargs).value_or("")};
  const std::string text = turn({.content = Json(content_)}, {.kwargs = kwargs}).value_or("");
  const size_t at = text.find(content_);
  if (at == std::string::npos) return plain;
  plain.before = text.substr(0, at);
  plain.after = text.substr(at + content_.size());
  return plain;
}

// The end of the user's message, with which the prompt begins, may be that of the assistant's too.
std::string TemplateProbe::without_prompt(std::string turn, const Json::Object& kwargs) {
  const std::string prompt = generation_prompt(kwargs).value_or("");
  if (prompt.empty()) return turn;
  size_t bytes = common_suffix(turn, prompt).size();
  if (bytes == prompt.size()) bytes -= text_units(prompt).front().size();
  turn.erase(turn.size() - bytes);
  return turn;
}

bool TemplateProbe::writes_system() {
  const std::string system = mark("system");
  const auto text = render({message_of("system", system), message_of("user", user_)}, {}, true);
  return text && text->find(system) != std::string::npos;
}

std::optional<std::string> TemplateProbe::whole_prompt(const Json::Object& kwargs) {
  return render({message_of("user", user_)}, kwargs, true);
}

}  // namespace paceline
