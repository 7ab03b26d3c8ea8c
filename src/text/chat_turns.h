// ChatTurns is how a model's chat template writes a turn, found out when it is first needed.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "paceline/chat_template.h"
#include "paceline/tokenizer.h"
#include "tools/turn_format.h"

namespace paceline {

// Any thread.
class ChatTurns {
 public:
  // Both must outlive it.
  ChatTurns(const ChatTemplate& chat_template, const Tokenizer& tokenizer)
      : template_(chat_template), tokenizer_(tokenizer) {}

  // Where the template writes no calls, they are those of tools/told_calls.h.
  std::shared_ptr<const TurnFormat> format() const;
  // The texts of the special tokens.
  const std::vector<std::string>& special_texts() const;

 private:
  void derive() const;

  const ChatTemplate& template_;
  const Tokenizer& tokenizer_;
  mutable std::once_flag derived_;
  mutable std::shared_ptr<const TurnFormat> format_;
  mutable std::vector<std::string> special_texts_;
};

}  // namespace paceline
