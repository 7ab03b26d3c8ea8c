#include "cli/system_prompt.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "cli/text_file.h"

namespace paceline {
namespace {

bool is_system_message(const ChatMessage& message) {
  const auto is_system = [](const std::string& role) {
    return role == "system" || role == "developer";
  };
  if (message.json.empty()) return is_system(message.role);
  const Json json = parse_json(message.json, "messages");
  const Json* role = json.find_value("role");
  return role != nullptr && role->is_string() && is_system(role->as_string("role"));
}

}  // namespace

Settings with_system_prompt(const Settings& settings, LLM& llm, Session& session) {
  Settings complete = settings;
  if (settings.system_prompt_file.empty() || !settings.system.empty()) return complete;
  complete.system = without_final_newline(read_whole_file(settings.system_prompt_file));
  const int64_t num_kept =
      llm.preload_system_prompt(complete.system, settings.chat_template_kwargs);
  if (settings.verbose) session.say(fmt::format("system prompt: {} tokens kept", num_kept));
  return complete;
}

void add_system_message(const std::string& system, ChatInput& input) {
  if (system.empty()) return;
  auto& messages = input.messages;
  if (std::any_of(messages.begin(), messages.end(), is_system_message)) return;
  messages.insert(messages.begin(), {.role = "system", .content = system});
}

}  // namespace paceline
