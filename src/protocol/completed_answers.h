// The answers to requests of the API, made of the library's results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "paceline/results.h"
#include "protocol/api_request.h"
#include "protocol/chat_answer.h"
#include "protocol/classification_answer.h"
#include "protocol/completion_answer.h"
#include "protocol/token_names.h"

namespace paceline {

// What one prompt of a request led to.
struct CompletedPart {
  std::vector<Completion> choices;  // n of them, never none; or
  Classification classification;
  int64_t prompt_tokens = 0;  // of a classification
};

// Whether the answer tells what tokens stand for; TokenNames of no tokenizer do for others.
bool names_tokens(const ApiRequest& request);

// `parts` are as many as the request has prompts, in their order.
CompletionAnswer completed_answer(const CompletionRequest& request,
                                  std::span<const CompletedPart> parts, const TokenNames& names,
                                  AnswerHead head);
ChatAnswer completed_answer(const ChatRequest& request, const CompletedPart& part,
                            const TokenNames& names, AnswerHead head);
ClassificationAnswer completed_answer(const ClassificationRequest& request,
                                      std::span<const CompletedPart> parts, AnswerHead head);

}  // namespace paceline
