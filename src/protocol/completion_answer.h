// CompletionAnswer is what POST /v1/completions answers.
#pragma once

#include <string>
#include <string_view>

#include "protocol/answer.h"

namespace paceline {

constexpr std::string_view kCompletionIdPrefix = "cmpl-";

using CompletionAnswer = ChoicesAnswer;

std::string completion_answer_json(const CompletionAnswer& answer);

}  // namespace paceline
