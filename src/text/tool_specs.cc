#include "text/tool_specs.h"

#include "base/json_cursor.h"
#include "base/json_writer.h"

namespace paceline {

std::vector<ToolSpec> read_tool_specs(const std::string& tools_json) {
  std::vector<ToolSpec> tools;
  if (tools_json.empty()) return tools;
  const Json document = parse_json(tools_json, "tools");
  for (const JsonCursor& tool : JsonCursor(document, "").below("tools", document).items()) {
    const JsonCursor function = tool.find("function").value_or(tool);
    ToolSpec spec{.name = function.at("name").string()};
    if (const auto parameters = function.find("parameters")) {
      parameters->object();
      spec.parameters = to_json(parameters->node().json());
    }
    if (const auto strict = function.find("strict")) spec.is_strict = strict->boolean();
    tools.push_back(std::move(spec));
  }
  return tools;
}

}  // namespace paceline
