#include "cli/served_names.h"

#include <filesystem>

#include "cli/model_opening.h"

namespace paceline {

std::vector<std::string> served_names(const Settings& settings) {
  if (!settings.served_model_names.empty()) return settings.served_model_names;
  const std::string path =
      settings.load.model.empty() ? model_path(settings).string() : settings.load.model;
  std::filesystem::path last = std::filesystem::path(path).lexically_normal();
  if (!last.has_filename()) last = last.parent_path();
  const bool is_gguf = last.extension() == ".gguf";
  std::vector<std::string> names = {(is_gguf ? last.stem() : last.filename()).string()};
  if (names[0] != path) names.push_back(path);
  return names;
}

}  // namespace paceline
