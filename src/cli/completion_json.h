// A completion as the answer line of `generate --jsonl`.
#pragma once

#include <string>

#include "paceline/results.h"

namespace paceline {

// `with_logprobs` false: "logprobs" is null.
std::string completion_json(const Completion& completion, bool with_logprobs);

// The same for a chat, with the assistant's "message".
std::string chat_completion_json(const Completion& completion, bool with_logprobs);

}  // namespace paceline
