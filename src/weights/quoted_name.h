// A name from a file as messages show it: quoted, control characters escaped, of bounded length.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

std::string quoted_name(std::string_view name);

}  // namespace paceline
