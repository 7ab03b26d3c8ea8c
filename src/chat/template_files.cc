#include "chat/template_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
constexpr size_t kMaxConfigBytes = size_t{64} << 20;
constexpr const char* kDefaultName = "default";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<TemplateFile> jinja_files(const fs::path& directory) {
  std::vector<TemplateFile> found;
  const auto add = [&](const fs::path& path, std::string name) {
    found.push_back(
        {std::move(name), path.filename().string(), read_text_file(path, kMaxTemplateBytes)});
  };
  const fs::path main = directory / "chat_template.jinja";
  if (!is_file(main)) return found;
  add(main, kDefaultName);
  std::vector<fs::path> more;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator(directory / "additional_chat_templates", ignored)) {
    if (entry.path().extension() == ".jinja" && is_file(entry.path())) more.push_back(entry.path());
  }
  std::sort(more.begin(), more.end());
  for (const fs::path& path : more) add(path, path.stem().string());
  return found;
}

// `chat_template` of a JSON file: a string, or a list of {"name", "template"}.
std::vector<TemplateFile> json_field(const fs::path& path) {
  std::vector<TemplateFile> found;
  if (!is_file(path)) return found;
  const std::string where = path.filename().string();
  const Json json = parse_json(read_text_file(path, kMaxConfigBytes), path.string());
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

std::vector<TemplateFile> find_template_files(const fs::path& directory) {
  std::vector<TemplateFile> found = jinja_files(directory);
  if (found.empty()) found = json_field(directory / "chat_template.json");
  if (found.empty()) found = json_field(directory / "tokenizer_config.json");
  return found;
}

}  // namespace paceline
