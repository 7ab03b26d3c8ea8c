// The part of TOML 1.0 that a config file of options needs: tables, keys, strings, numbers, arrays.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace paceline {

struct TomlEntry {
  std::string table;  // empty at the top of the file
  std::string key;
  Json value;
  int line = 0;
};

// Comments, [table], bare and quoted keys, the four kinds of strings, integers (decimal, 0x, 0o,
// 0b, underscores), floats, booleans, arrays over several lines, inline tables. Dotted keys, arrays
// of tables and dates throw Error unsupported; ill-formed text and duplicate keys throw Error
// invalid; both "WHERE:LINE: ...".
std::vector<TomlEntry> parse_toml(std::string_view text, std::string_view where);

}  // namespace paceline
