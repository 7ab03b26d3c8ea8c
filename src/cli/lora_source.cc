#include "cli/lora_source.h"

#include <filesystem>

namespace paceline {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string name_of_path(const std::string& path) {
  fs::path last = fs::path(path).lexically_normal();
  if (!last.has_filename()) last = last.parent_path();
  return (last.extension() == ".gguf" ? last.stem() : last.filename()).string();
}

std::optional<LoraSource> read_lora_source(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const size_t equals = text.find('=');
  const bool has_name = equals < text.find('/');
  std::error_code ignored;
  if (equals == text.npos || !has_name || fs::exists(text, ignored)) {
    const std::string name = name_of_path(text);
    return LoraSource{.name = name.empty() ? text : name, .path = text};
  }
  if (equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return LoraSource{.name = text.substr(0, equals), .path = text.substr(equals + 1)};
}

}  // namespace paceline
