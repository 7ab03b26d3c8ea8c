// ChatAnswer is what POST /v1/chat/completions answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/answer.h"

namespace paceline {

constexpr std::string_view kChatIdPrefix = "chatcmpl-";

struct ChatAnswer {
  AnswerHead head;
  std::vector<AnswerChoice> choices;
  AnswerUsage usage;
  TokenNaming naming = TokenNaming::text;
};

std::string chat_answer_json(const ChatAnswer& answer);

}  // namespace paceline
