// ChatResponse is the answer of POST /v1/chat/completions.
#pragma once

#include <string>
#include <string_view>

#include "protocol/response.h"

namespace paceline {

constexpr std::string_view kChatIdPrefix = "chatcmpl-";

using ChatResponse = ChoicesResponse;

std::string chat_response_json(const ChatResponse& answer);

}  // namespace paceline
