// Converts tokens and log-probabilities to the library's results.
#pragma once

#include <string>
#include <vector>

#include "engine/event.h"
#include "paceline/results.h"
#include "text/text_model.h"

namespace paceline {

// The token's text for people and JSON: its bytes with U+FFFD for incomplete characters.
std::string token_string(const TextModel& model, TokenId id);

std::vector<TopLogprob> describe_top(const TextModel& model, const std::vector<TokenLogprob>& top);

std::vector<Logprob> describe(const TextModel& model, const std::vector<ScoredToken>& tokens);

}  // namespace paceline
