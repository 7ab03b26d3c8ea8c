// Makes the API's answers from the library's results.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "paceline/results.h"
#include "protocol/chat_request.h"
#include "protocol/completion_request.h"
#include "protocol/token_names.h"

namespace paceline {

// A choice without its index and the log-probabilities of its text.
ResponseChoice response_choice(const Completion& completion, const GenerationFields& fields,
                               const TokenNames& names);
// Adds the tokens of `choices`, all of one prompt, to an answer's usage: the prompt counts once.
void add_usage(std::span<const Completion> choices, ResponseUsage& usage);

// What was asked for and not done, in sentences: what was left out of a chat's messages, then what
// isn't enforced of a schema. `chat` is null for other requests.
std::vector<std::string> warnings_of(const ChatRequest* chat, const Completion& completion);

// The prompt as an answer with `echo` begins with it.
std::string echoed_text(const PromptText& prompt, const TokenNames& names);

// How the answers to a request name tokens.
TokenNaming naming_of(const GenerationFields& fields);

// Whether the answer contains the texts of tokens; if not, TokenNames needs no tokenizer.
bool names_tokens(const CompletionRequest& request);
bool names_tokens(const ChatRequest& request);

// `parts` are the results of the request's prompts, in their order. With more candidates than n,
// the answer has those with the highest mean log-probability per token, the best one first.
ChoicesResponse completed_response(const CompletionRequest& request,
                                   std::span<const CompletedPart> parts, const TokenNames& names,
                                   ResponseHead head);
ChoicesResponse completed_response(const ChatRequest& request, const CompletedPart& part,
                                   const TokenNames& names, ResponseHead head);

}  // namespace paceline
