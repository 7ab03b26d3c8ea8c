// The part of TOML 1.0 that a config file of options needs: tables, keys, strings, numbers, arrays.
#pragma once

#include <string_view>
#include <vector>

#include "cli/config_entry.h"

namespace paceline {

// Comments, [table], bare and quoted keys, the four kinds of strings, integers (decimal, 0x, 0o,
// 0b, underscores), floats, booleans, arrays over several lines, inline tables. Dotted keys, arrays
// of tables and dates throw Error unsupported; ill-formed text and duplicate keys throw Error
// invalid; both "WHERE:LINE: ...".
std::vector<ConfigEntry> parse_toml(std::string_view text, std::string_view where);

}  // namespace paceline
