// TokenScoreRequest is the body of POST /v1/score_tokens, an extension of Paceline: it asks for the
// log-probability of each token of a text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "paceline/results.h"
#include "protocol/request_fields.h"
#include "protocol/response.h"
#include "protocol/token_names.h"

namespace paceline {

struct TokenScoreRequest {
  CommonFields common;
  PromptList input;
  int32_t top_logprobs = 0;        // alternatives beside each token, 0 to 20
  bool add_special_tokens = true;  // to a text
};

// Throws RequestError naming the first field that is wrong, unknown or not supported.
TokenScoreRequest parse_token_score_request(const Json& body, const RequestTerms& terms = {});

FieldList token_score_request_fields();

constexpr std::string_view kTokenScoreIdPrefix = "score-";

// {"id", "object": "list", "created", "model", "data": [{"object": "score", "index", "token_ids",
// "token_logprobs" (the first is null), "logprob" (their sum), "prompt_logprobs" (in vLLM's shape,
// when alternatives were asked for)}], "usage"}
std::string token_score_response_json(const TokenScoreRequest& request, const ItemAnswer& answer,
                                      const TokenNames& names);

}  // namespace paceline
