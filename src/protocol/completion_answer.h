// CompletionAnswer is what POST /v1/completions answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/answer.h"

namespace paceline {

constexpr std::string_view kCompletionIdPrefix = "cmpl-";

struct CompletionAnswer {
  AnswerHead head;
  std::vector<AnswerChoice> choices;  // by prompt, then by k: index = prompt * n + k
  AnswerUsage usage;
  TokenNaming naming = TokenNaming::text;
};

std::string completion_answer_json(const CompletionAnswer& answer);

}  // namespace paceline
