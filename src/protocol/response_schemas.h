// JSON Schemas of answers, for /openapi.json.
#pragma once

#include <string_view>

namespace paceline {

// {"Error": {...}, "Completion": {...}, ...}: the components that the routes refer to.
std::string_view response_schemas_json();

}  // namespace paceline
