// Conversation is the history of a chat: sent to the model, saved and loaded.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paceline/chat_template.h"
#include "paceline/results.h"

namespace paceline {

class Conversation {
 public:
  explicit Conversation(std::string system = {}) : system_(std::move(system)) {}

  const std::string& system() const { return system_; }
  void set_system(std::string text) { system_ = std::move(text); }

  void add_question(std::string text) { turns_.push_back({"user", std::move(text)}); }
  // The content; what the model reasoned before it stands beside it.
  void add_answer(const Completion& completion);
  // Removes the last question, which got no answer.
  void drop_question();
  // Removes the last turn if it is an answer to a question, and returns it.
  std::optional<ChatMessage> take_answer();
  // Puts an answer back.
  void put_answer(ChatMessage answer) { turns_.push_back(std::move(answer)); }
  void clear() { turns_.clear(); }

  // Questions and answers so far.
  size_t num_turns() const { return turns_.size(); }
  // The system message, if there is one, and the turns.
  std::vector<ChatMessage> messages() const;

  // {"messages": [{"role": ..., "content": ...}, ...]}, with reasoning_content where there is some
  std::string to_json() const;
  // Reads to_json()'s output, or the array alone; `where` names the text in errors. Throws Error
  // invalid and leaves the conversation unchanged.
  void read_json(std::string_view json, std::string_view where);

 private:
  std::string system_;
  std::vector<ChatMessage> turns_;
};

}  // namespace paceline
