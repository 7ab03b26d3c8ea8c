// The JSON of a request's body.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json.h"
#include "protocol/field_type.h"

namespace paceline {

// Limits of a body, beyond any reasonable request: they bound the time and memory of its tree.
constexpr size_t kMaxMembers = 262'144;                            // of all its objects
constexpr size_t kMaxValues = kMaxListedTokens + 2 * kMaxMembers;  // in total

// Throws RequestError for malformed JSON, and for too many values before it makes a tree.
Json parse_request_body(std::string_view body);

}  // namespace paceline
