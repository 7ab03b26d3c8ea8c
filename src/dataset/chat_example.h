// ChatExamples renders chats of training data and finds where the assistant's turns begin and end.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dataset/dataset_message.h"
#include "dataset/example_text.h"
#include "text/chat_prompt.h"
#include "text/chat_turns.h"

namespace paceline {

struct DatasetChat {
  std::vector<DatasetMessage> messages;
  size_t num_prompt_messages = 0;  // the rest is the completion
  std::string tools = {};          // a JSON array; empty: none
  std::string where = {};          // for messages
};

// Puts a line's `system` in front of the chat. Throws Error invalid when the chat begins with a
// system message of its own.
void add_system_prompt(const JsonCursor& line, DatasetChat& chat);

class ChatExamples {
 public:
  // `model` and `options` must outlive it. `options.now` must be set.
  ChatExamples(const DatasetModel& model, const DatasetOptions& options);

  bool has_template() const { return model_.chat_template != nullptr; }
  LossTokens loss_tokens() const { return options_.loss_tokens; }

  // The text of all messages, rendered as serving does (render_chat). The prompt of a turn is the
  // rendering of the messages before it with the generation prompt, as the server writes it; a turn
  // begins where its prompt ends, or, if the generation prompt ends otherwise than the whole text
  // has it, with the first token that differs (ExampleText::num_other_prompts). Throws Error
  // unsupported when the model has no chat template; invalid, naming the message, when the template
  // fails, leaves out a call, or doesn't write a turn after what it writes of the messages before.
  ExampleText render(const DatasetChat& chat) const;

  // A prompt and its answer put together.
  ExampleText without_template(const std::string& prompt, const std::string& answer) const;

 private:
  struct TurnBegin {
    size_t at = 0;
    bool is_other_prompt = false;
  };

  RenderedChat render_first(const DatasetChat& chat, size_t num_messages,
                            bool add_generation_prompt) const;
  std::string render_part(const DatasetChat& chat, size_t num_messages,
                          bool add_generation_prompt) const;
  size_t past_end(const DatasetChat& chat, size_t message, const std::string& prompt) const;
  TurnBegin turn_begin(const DatasetChat& chat, size_t message, const std::string& whole) const;
  size_t turn_end(const DatasetChat& chat, size_t message, const std::string& whole) const;
  void check_calls(const DatasetChat& chat) const;
  void check_others(const DatasetChat& chat, const ExampleText& example) const;
  void find_assistant_turns(const DatasetChat& chat, ExampleText& example) const;

  const DatasetModel& model_;
  const DatasetOptions& options_;
  std::optional<ChatTurns> turns_;  // of the template
  ChatRenderer renderer_;
};

}  // namespace paceline
