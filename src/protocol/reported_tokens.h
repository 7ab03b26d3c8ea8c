// Converts log-probabilities of the library's results for answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "paceline/results.h"
#include "protocol/request_fields.h"
#include "protocol/response.h"
#include "protocol/token_names.h"

namespace paceline {

// Each with the first `num_top` of its alternatives.

// Tokens of an answer's text.
std::vector<ReportedToken> report_output(std::span<const Logprob> tokens, int32_t num_top,
                                         const TokenNames& names, SpecialTokens specials);

// Tokens of a prompt that isn't part of the answer's text.
std::vector<ReportedToken> report_prompt(std::span<const Logprob> tokens, int32_t num_top,
                                         const TokenNames& names);

// Tokens of a prompt in front of the answer's text; `add_special_tokens` as it was encoded.
std::vector<ReportedToken> report_echo(std::span<const Logprob> tokens, int32_t num_top,
                                       const PromptText& prompt, bool add_special_tokens,
                                       const TokenNames& names);

}  // namespace paceline
