// The JSON of a request's body.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json.h"
#include "protocol/field_type.h"

namespace paceline {

// Of a body; a tree of more would take more time and memory than any good request is worth.
constexpr size_t kMaxMembers = 32768;                          // of its objects, all together
constexpr size_t kMaxValues = kMaxTokenIds + 2 * kMaxMembers;  // all of them

// Throws RequestError for too many of them before a tree is made, and for what is no JSON.
Json parse_request_body(std::string_view body);

}  // namespace paceline
