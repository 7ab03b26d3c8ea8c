// ChatAnswer is what POST /v1/chat/completions answers.
#pragma once

#include <string>
#include <string_view>

#include "protocol/answer.h"

namespace paceline {

constexpr std::string_view kChatIdPrefix = "chatcmpl-";

using ChatAnswer = ChoicesAnswer;

std::string chat_answer_json(const ChatAnswer& answer);

}  // namespace paceline
