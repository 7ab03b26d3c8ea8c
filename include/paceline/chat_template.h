// ChatTemplate renders a conversation into the prompt that a model was trained on.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paceline/error.h"

namespace paceline {

class ModelFiles;  // not part of the API

struct ChatMessage {
  std::string role;     // "system", "user", "assistant", "tool", ...
  std::string content;  // as a string
  // When not empty: the whole message as a JSON object, for tool calls, content in parts, ...;
  // `role` and `content` are then ignored.
  std::string json = {};
};

// The input of a template.
struct ChatInput {
  std::vector<ChatMessage> messages;
  std::string tools_json = {};      // a JSON array; empty: none
  std::string documents_json = {};  // a JSON array; empty: none
  std::string kwargs_json = {};     // further variables, a JSON object; empty: none
  bool add_generation_prompt = true;
  // Leaves the last message open for the model to continue; excludes add_generation_prompt.
  bool continue_final_message = false;
  // e.g. {"bos_token", "<s>"}; see Tokenizer::special_tokens.
  std::vector<std::pair<std::string, std::string>> special_tokens = {};
  std::optional<std::string> now =
      {};  // the clock of strftime_now, ISO 8601; the machine's if unset
};

// Runs the Jinja of chat templates like transformers (ImmutableSandboxedEnvironment, trim_blocks,
// lstrip_blocks, loop controls). Immutable; any number of threads may use it at once.
class ChatTemplate {
 public:
  struct State;  // the implementation, not part of the API

  // Throws Error invalid "NAME:LINE:COLUMN: ..." when the source can't be parsed.
  static ChatTemplate parse(std::string_view source, std::string_view name);
  // Loads the template of a model's directory: chat_template.jinja, chat_template.json, or
  // chat_template of tokenizer_config.json (a string, or a list of named ones), in that order. An
  // empty `name` selects "tool_use" for an input with tools, else "default". Nothing when there is
  // no template. Throws Error invalid when it can't be parsed or there is none of that name.
  static std::optional<ChatTemplate> load(const std::filesystem::path& directory,
                                          std::string_view name = {});
  static std::optional<ChatTemplate> load(const ModelFiles& files, std::string_view name = {});
  // A built-in format: "chatml" (Qwen 2 and 3), "gemma" or "llama3". Throws Error invalid, with a
  // list of the formats, for another name.
  static ChatTemplate builtin(std::string_view name);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The prompt, to be encoded without adding special tokens. Throws Error invalid for a last
  // message that can't be continued, with the message of the template's raise_exception, or
  // "NAME:LINE:COLUMN: ..." for other errors in the template; exhausted when a budget of steps,
  // depth, output or range is used up.
  std::string render(const ChatInput& input) const;

  // Its source, e.g. "chat_template.jinja"; for messages.
  std::string_view name() const;
  std::string_view source() const;

 private:
  explicit ChatTemplate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline
