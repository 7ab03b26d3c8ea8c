// The prompts of a completion that are more than a text or token ids.
#pragma once

#include "protocol/completion_request.h"
#include "text/text_model.h"

namespace paceline {

// Encodes mixed prompts, the gap to fill, and prompts with a suffix, so that the request has
// prompts of texts or token ids. Throws RequestError where the model, or the rest of the request,
// has no place for a suffix; Error when the model lacks the tokens.
void encode_prompts(const TextModel& model, CompletionRequest& request);

}  // namespace paceline
