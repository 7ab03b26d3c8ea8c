// Reads tools as a template takes them.
#pragma once

#include <string>
#include <vector>

#include "tools/tool_set.h"

namespace paceline {

// `tools_json` is an array of functions, each as {"name": ..., "parameters": ...} or, as OpenAI
// writes them, {"type": "function", "function": {...}}; empty: none. Throws Error invalid naming
// the place.
std::vector<ToolSpec> read_tool_specs(const std::string& tools_json);

}  // namespace paceline
