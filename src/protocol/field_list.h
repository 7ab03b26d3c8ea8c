// Every field of every request.
#pragma once

#include <string_view>

namespace paceline {

// Whether some request has a field of this name.
bool is_request_field(std::string_view name);

}  // namespace paceline
