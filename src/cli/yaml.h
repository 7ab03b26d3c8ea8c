// The part of YAML that a config file of options needs: nested mappings, lists, scalars.
#pragma once

#include <string_view>
#include <vector>

#include "cli/config_entry.h"

namespace paceline {

// Block mappings, whose nesting makes the entries' tables; lists of values in lines or in [ ];
// mappings in { }; comments; a document start. Scalars are read as PyYAML does: null and ~, true
// and false as well as yes, no, on and off, integers, floats (1e-5 too, as mlx_lm reads them),
// strings plain or in quotes on one line. Anchors, aliases, tags, merge keys, block texts,
// directives, several documents and mappings inside lists of lines throw Error unsupported;
// ill-formed text and duplicate keys throw Error invalid; both "WHERE:LINE: ...".
std::vector<ConfigEntry> parse_yaml(std::string_view text, std::string_view where);

}  // namespace paceline
