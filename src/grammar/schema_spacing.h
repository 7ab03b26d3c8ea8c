// What separates the parts of JSON texts, as a schema's "x-guidance" asks for it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "grammar/schema_node.h"

namespace paceline {

struct JsonSpacing {
  bool is_flexible = true;  // blanks may stand between all parts; else only in these two
  std::string item_separator = ",";
  std::string key_separator = ":";
};

// Reads the options of llguidance that a schema has in "x-guidance". Returns what can't be obeyed,
// a sentence for each. "lenient" makes `rigor` best effort, unless it is strict.
std::vector<std::string> read_json_guidance(const Json& guidance, SchemaRigor& rigor,
                                            JsonSpacing& spacing);

}  // namespace paceline
