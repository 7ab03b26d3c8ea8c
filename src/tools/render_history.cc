#include "tools/render_history.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "chat/message_json.h"
#include "tools/history_forms.h"

namespace paceline {
namespace {

std::string_view bare(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Finds texts in a prompt, one after the other, as they are or as JSON writes them.
class PromptSearch {
 public:
  explicit PromptSearch(std::string_view prompt) : prompt_(prompt) {}

  // Behind the last text that was passed.
  bool contains(std::string_view text) { return find(bare(text)) != std::string_view::npos; }
  bool passes(std::string_view text) {
    const size_t found = find(bare(text));
    if (found == std::string_view::npos) return false;
    at_ = found + bare(text).size();
    return true;
  }

 private:
  size_t find(std::string_view text) {
    if (num_searched_ > kMostSearches * prompt_.size()) return at_;  // counts as found
    const size_t found = prompt_.find(text, at_);
    num_searched_ += std::min(found, prompt_.size()) - at_;
    if (found != std::string_view::npos) return found;
    const std::string quoted = json_quote(text);
    if (quoted.size() == text.size() + 2) return found;
    return prompt_.find(std::string_view(quoted).substr(1, quoted.size() - 2), at_);
  }

  static constexpr size_t kMostSearches = 64;  // of the whole prompt

  std::string_view prompt_;
  size_t at_ = 0;
  size_t num_searched_ = 0;  // bytes
};

bool contains_strings(const Json& value, PromptSearch& prompt) {
  if (value.is_string()) return prompt.contains(*value.string());
  if (value.is_array()) {
    return std::all_of(value.array()->begin(), value.array()->end(),
                       [&](const Json& item) { return contains_strings(item, prompt); });
  }
  if (!value.is_object()) return true;
  return std::all_of(value.object()->begin(), value.object()->end(),
                     [&](const auto& member) { return contains_strings(member.second, prompt); });
}

bool contains_calls(const Json& message, PromptSearch& prompt) {
  const Json* const calls = message.find_value("tool_calls");
  if (calls == nullptr || !calls->is_array()) return true;
  return std::all_of(calls->array()->begin(), calls->array()->end(), [&](const Json& call) {
    const Json* const function = call.find_value("function");
    const Json* const arguments = function == nullptr ? nullptr : function->find_value("arguments");
    return arguments == nullptr || contains_strings(*arguments, prompt);
  });
}

// Templates may write all system messages in front. The assistant's own texts aren't looked for:
// many templates leave out its reasoning, and some what it says beside a call.
bool is_complete(const Messages& messages, std::string_view prompt) {
  PromptSearch system(prompt);
  PromptSearch others(prompt);
  return std::all_of(messages.begin(), messages.end(), [&](const Json& message) {
    const std::string role = text_member(message, "role");
    if (role == "assistant") return contains_calls(message, others);
    return (role == "system" ? system : others).passes(content_text(message));
  });
}

ChatInput with_messages(const ChatInput& input, const Messages& messages) {
  ChatInput other = input;
  other.messages.clear();
  for (const Json& message : messages) {
    other.messages.push_back({.role = {}, .content = {}, .json = to_json(message)});
  }
  return other;
}

// The conversation's forms, from the one that changes least.
std::vector<Messages> forms_of(const Messages& messages) {
  const Messages one_system = with_one_system_message(messages);
  const Messages in_order = with_turns_in_order(one_system);
  const Messages without_system = with_turns_in_order(without_system_message(in_order));
  std::vector<Messages> forms = {messages};
  for (const Messages& form : {one_system, in_order, without_system}) {
    forms.push_back(form);
    forms.push_back(with_single_calls(form));
  }
  const bool has_calls = std::any_of(messages.begin(), messages.end(), [](const Json& message) {
    return message.find_value("tool_calls") != nullptr;
  });
  if (!has_calls) return {one_system, in_order, without_system};
  std::vector<Messages> all;
  for (Messages& form : forms) {
    Messages with_nulls = with_null_contents(form);
    all.push_back(std::move(form));
    all.push_back(std::move(with_nulls));
  }
  all.erase(all.begin());  // the conversation itself
  return all;
}

}  // namespace

std::string render_history(const ChatTemplate& chat_template, const ChatInput& input) {
  Messages messages;
  for (const ChatMessage& message : input.messages) {
    messages.push_back(message_json(message, messages.size()));
  }
  std::optional<std::string> incomplete;
  std::exception_ptr problem;
  // Whether the prompt is complete.
  const auto attempt = [&](const ChatInput& form) -> std::optional<std::string> {
    try {
      std::string prompt = chat_template.render(form);
      if (is_complete(messages, prompt)) return prompt;
      if (!incomplete) incomplete = std::move(prompt);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid) throw;
      if (problem == nullptr) problem = std::current_exception();
    }
    return std::nullopt;
  };
  if (auto prompt = attempt(input)) return *std::move(prompt);
  for (const Messages& form : forms_of(messages)) {
    if (auto prompt = attempt(with_messages(input, form))) return *std::move(prompt);
  }
  if (!incomplete) std::rethrow_exception(problem);
  return *std::move(incomplete);
}

}  // namespace paceline
