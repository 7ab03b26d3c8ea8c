#include "base/model_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/mapped_file.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

void ModelFiles::add_made(std::string name, std::string source, std::function<std::string()> make) {
  makers_.insert_or_assign(name, std::move(make));
  sources_.insert_or_assign(std::move(name), std::move(source));
}

std::string ModelFiles::where(std::string_view name) const {
  if (!is_directory_) return fmt::format("{}: {}", origin_.string(), name);
  const auto source = sources_.find(name);
  const bool is_made = source != sources_.end() && !is_file(origin_ / name);
  return (origin_ / (is_made ? std::string_view(source->second) : name)).string();
}

bool ModelFiles::contains(std::string_view name) const {
  return (is_directory_ && is_file(origin_ / name)) || makers_.contains(name);
}

std::string ModelFiles::read(std::string_view name, size_t max_bytes) const {
  if (is_directory_ && (is_file(origin_ / name) || !makers_.contains(name))) {
    return read_text_file(origin_ / name, max_bytes);
  }
  const auto maker = makers_.find(name);
  if (maker == makers_.end()) {
    throw Error(ErrorCode::not_found, fmt::format("{}: says nothing of it", where(name)));
  }
  std::string text = maker->second();
  if (text.size() > max_bytes) {
    throw Error(ErrorCode::invalid, fmt::format("{}: {} bytes, at most {} are read", where(name),
                                                text.size(), max_bytes));
  }
  return text;
}

std::vector<std::string> ModelFiles::names_in(std::string_view folder,
                                              std::string_view extension) const {
  std::vector<std::string> names;
  if (!is_directory_) return names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(origin_ / folder, ignored)) {
    if (entry.path().extension() != extension || !is_file(entry.path())) continue;
    names.push_back(fmt::format("{}/{}", folder, entry.path().filename().string()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace paceline
