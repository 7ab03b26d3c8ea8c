// CompletionResponse is the answer of POST /v1/completions.
#pragma once

#include <string>
#include <string_view>

#include "protocol/response.h"

namespace paceline {

constexpr std::string_view kCompletionIdPrefix = "cmpl-";

using CompletionResponse = ChoicesResponse;

std::string completion_response_json(const CompletionResponse& answer);

}  // namespace paceline
