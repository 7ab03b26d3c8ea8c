#include "dataset/dataset_tools.h"

#include <optional>
#include <utility>

#include "base/json_writer.h"

namespace paceline {
namespace {

Json with_wrapper(const JsonCursor& tool) {
  tool.object();
  const bool is_bare = tool.contains("name") && !tool.contains("function");
  if (!is_bare) return tool.node().json();
  return Json(
      Json::Object{{"type", Json(std::string("function"))}, {"function", tool.node().json()}});
}

std::string written_tools(const JsonCursor& tools) {
  if (tools.num_items() == 0) return {};
  Json::Array written;
  for (const JsonCursor& tool : tools.items()) written.push_back(with_wrapper(tool));
  return to_json(Json(std::move(written)));
}

}  // namespace

std::string read_dataset_tools(const JsonCursor& line) {
  std::optional<JsonCursor> tools = line.find("tools");
  const std::optional<JsonCursor> functions = line.find("functions");
  if (tools && functions) line.fail("found both tools and functions, expected one of them");
  if (!tools) tools = functions;
  if (!tools) return {};
  if (!tools->is_string()) return written_tools(*tools);
  if (tools->string().find_first_not_of(" \t\r\n") == std::string::npos) return {};
  const Json parsed = parse_json(tools->string(), tools->name());
  return written_tools(JsonCursor(parsed, tools->name()));
}

}  // namespace paceline
