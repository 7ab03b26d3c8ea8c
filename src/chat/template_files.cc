#include "chat/template_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/json.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
constexpr size_t kMaxConfigBytes = size_t{64} << 20;
constexpr const char* kDefaultName = "default";

std::vector<TemplateFile> jinja_files(const ModelFiles& files) {
  constexpr const char* kMain = "chat_template.jinja";
  std::vector<TemplateFile> found;
  if (!files.contains(kMain)) return found;
  found.push_back({kDefaultName, kMain, files.read(kMain, kMaxTemplateBytes)});
  for (const std::string& name : files.names_in("additional_chat_templates", ".jinja")) {
    const fs::path path(name);
    found.push_back(
        {path.stem().string(), path.filename().string(), files.read(name, kMaxTemplateBytes)});
  }
  return found;
}

// `chat_template` of a JSON file: a string, or a list of {"name", "template"}.
std::vector<TemplateFile> json_field(const ModelFiles& files, const std::string& where) {
  std::vector<TemplateFile> found;
  if (!files.contains(where)) return found;
  const Json json = parse_json(files.read(where, kMaxConfigBytes), files.where(where));
  const Json* field = json.find_value("chat_template");
  if (field == nullptr) return found;
  const std::string name = where + ": chat_template";
  if (!field->is_array()) {
    found.push_back({kDefaultName, where, field->as_string(name)});
    return found;
  }
  for (size_t i = 0; i < field->as_array(name).size(); ++i) {
    const Json& entry = field->as_array(name)[i];
    const auto text = [&](std::string_view key) {
      const std::string of_entry = fmt::format("{}[{}].{}", name, i, key);
      const Json* value = entry.find_value(key);
      if (value == nullptr) throw Error(ErrorCode::invalid, of_entry + " is missing");
      return value->as_string(of_entry);
    };
    found.push_back({text("name"), where, text("template")});
  }
  return found;
}

}  // namespace

std::vector<TemplateFile> find_template_files(const ModelFiles& files) {
  std::vector<TemplateFile> found = jinja_files(files);
  if (found.empty()) found = json_field(files, "chat_template.json");
  if (found.empty()) found = json_field(files, "tokenizer_config.json");
  return found;
}

}  // namespace paceline
