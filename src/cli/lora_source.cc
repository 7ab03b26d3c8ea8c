#include "cli/lora_source.h"

#include <filesystem>

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::string name_of(const std::string& directory) {
  fs::path path = fs::path(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const bool is_gguf = path.extension() == ".gguf";
  const std::string name = (is_gguf ? path.stem() : path.filename()).string();
  return name.empty() ? directory : name;
}

}  // namespace

std::optional<LoraSource> read_lora_source(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const size_t equals = text.find('=');
  const bool has_name = equals < text.find('/');
  std::error_code ignored;
  if (equals == text.npos || !has_name || fs::exists(text, ignored)) {
    return LoraSource{.name = name_of(text), .path = text};
  }
  if (equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return LoraSource{.name = text.substr(0, equals), .path = text.substr(equals + 1)};
}

}  // namespace paceline
