// ConfigEntry is one key of a config file and its value, whatever the file's notation.
#pragma once

#include <string>

#include "base/json.h"

namespace paceline {

struct ConfigEntry {
  std::string table;  // empty at the top of the file; "a.b" where tables are nested
  std::string key;
  Json value;
  int line = 0;
};

}  // namespace paceline
