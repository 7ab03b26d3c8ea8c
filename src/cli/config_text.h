// The text of a config file, TOML or YAML, as a list of keys and values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace paceline {

struct ConfigEntry {
  std::string table;  // empty at the top of the file; "a.b" where tables are nested
  std::string key;
  Json value;
  int line = 0;
};

// Both return the entries by line and throw Error "WHERE:LINE: ...": invalid for a malformed text
// and for a key that is set twice, unsupported for what options have no use for: dates in TOML;
// anchors, aliases, tags, merge keys, directives and several documents in YAML.
std::vector<ConfigEntry> parse_toml(std::string_view text, std::string_view where);
// Scalars without quotes are read as PyYAML does, and 1e-5 as a number too, as mlx_lm reads it.
std::vector<ConfigEntry> parse_yaml(std::string_view text, std::string_view where);

// Entries of a config file of train, with the keys of mlx_lm.lora's files (adapter_path,
// grad_checkpoint, lora_parameters, optimizer_config, ...) as options; all others stay as they are.
// What only another choice of mlx_lm's uses is left out, as test_batches beside test: false. Throws
// Error "WHERE:LINE: KEY: ..." for what isn't supported.
std::vector<ConfigEntry> translate_mlx_entries(std::vector<ConfigEntry> entries,
                                               std::string_view where);

}  // namespace paceline
