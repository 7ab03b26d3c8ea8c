#include "cli/served_names.h"

#include <filesystem>

#include "cli/model_opening.h"

namespace paceline {

std::vector<std::string> served_names(const Settings& settings) {
  if (!settings.served_model_names.empty()) return settings.served_model_names;
  const std::string path =
      settings.load.model.empty() ? model_directory(settings).string() : settings.load.model;
  std::filesystem::path last = std::filesystem::path(path).lexically_normal();
  if (!last.has_filename()) last = last.parent_path();
  std::vector<std::string> names = {last.filename().string()};
  // What was asked for by name is known by it too; where files lie is nobody else's business.
  const bool is_name = !std::filesystem::path(path).is_absolute();
  if (is_name && names[0] != path) names.push_back(path);
  return names;
}

}  // namespace paceline
