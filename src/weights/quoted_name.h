// Quotes a name from a file for messages, with control characters escaped and a bounded length.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

std::string quoted_name(std::string_view name);

}  // namespace paceline
