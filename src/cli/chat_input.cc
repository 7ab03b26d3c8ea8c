#include "cli/chat_input.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_writer.h"
#include "cli/line_fields.h"
#include "cli/text_file.h"

namespace paceline {
namespace {

std::string json_of(const Json& line, std::string_view field) {
  const Json* value = line.find_value(field);
  return value == nullptr ? std::string() : to_json(*value);
}

void read_tool_choice(const JsonCursor& choice, ChatOptions& options) {
  if (!choice.is_string()) {
    options.tool_choice = ToolChoice::named;
    options.tool_name = choice.at("function").at("name").string();
    return;
  }
  const std::string& word = choice.string();
  if (word == "none") {
    options.tool_choice = ToolChoice::none;
  } else if (word == "required") {
    options.tool_choice = ToolChoice::required;
  } else if (word != "auto") {
    throw error_of(
        ErrorCode::invalid,
        "{}: found \"{}\", expected none, auto, required, or an object that names a function",
        choice.path(), word);
  }
}

bool is_system_message(const ChatMessage& message) {
  const auto is_system = [](const std::string& role) {
    return role == "system" || role == "developer";
  };
  if (message.json.empty()) return is_system(message.role);
  const Json json = parse_json(message.json, "messages");
  const Json* role = json.find_value("role");
  return role != nullptr && role->is_string() && is_system(*role->string());
}

}  // namespace

ChatInput chat_input(const Conversation& conversation, const Settings& settings) {
  return {.messages = conversation.messages(), .kwargs_json = settings.chat_template_kwargs};
}

ChatInput read_chat_input(const Json& line, std::string_view kwargs_field,
                          const Settings& settings) {
  ChatInput input;
  for (const JsonCursor& message : line_cursor(line).at("messages").items()) {
    message.object();
    input.messages.push_back({.json = to_json(message.node().json())});
  }
  input.tools_json = json_of(line, "tools");
  input.documents_json = json_of(line, "documents");
  input.kwargs_json = json_of(line, kwargs_field);
  if (input.kwargs_json.empty()) input.kwargs_json = settings.chat_template_kwargs;
  add_system_message(settings.system, input);
  return input;
}

ChatOptions read_chat_options(const Json& line) {
  const JsonCursor fields = line_cursor(line);
  ChatOptions options;
  if (const auto choice = fields.find("tool_choice")) read_tool_choice(*choice, options);
  if (const auto parallel = fields.find("parallel_tool_calls")) {
    options.parallel_tool_calls = parallel->boolean();
  }
  if (const auto effort = fields.find("reasoning_effort")) {
    options.reasoning_effort = effort->string();
  }
  return options;
}

Settings with_system_prompt(const Settings& settings, LLM& llm, Session& session) {
  Settings complete = settings;
  if (settings.system_prompt_file.empty() || !settings.system.empty()) return complete;
  complete.system = without_final_newline(read_whole_text(settings.system_prompt_file));
  const int64_t num_kept = llm.preload_system_prompt(complete.system, settings.chat_template_kwargs,
                                                     settings.generate.lora);
  if (settings.verbose) session.print_note("system prompt: {} tokens kept", num_kept);
  return complete;
}

void add_system_message(const std::string& system, ChatInput& input) {
  if (system.empty()) return;
  auto& messages = input.messages;
  if (std::any_of(messages.begin(), messages.end(), is_system_message)) return;
  messages.insert(messages.begin(), {.role = "system", .content = system});
}

}  // namespace paceline
