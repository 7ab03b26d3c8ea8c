#include "base/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/mapped_file.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Infinity, -Infinity and NaN outside of strings.
std::string with_named_floats_as_objects(std::string text) {
  constexpr std::array<std::string_view, 3> kNames = {"-Infinity", "Infinity", "NaN"};
  const auto is_there = [&](std::string_view name) { return text.find(name) != std::string::npos; };
  if (std::ranges::none_of(kNames, is_there)) return text;
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    const auto name = std::ranges::find_if(
        kNames, [&](std::string_view one) { return !in_string && rest.starts_with(one); });
    if (name != kNames.end()) {
      out += fmt::format(R"({{"__float__": "{}"}})", *name);
      i += name->size();
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    const size_t length = in_string && text[i] == '\\' ? 2 : 1;
    out += rest.substr(0, length);
    i += length;
  }
  return out;
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

std::string ModelFiles::read_config(std::string_view name) const {
  return with_named_floats_as_objects(read(name, kMaxConfigBytes));
}

Json ModelFiles::read_json(std::string_view name) const {
  return parse_json(read_config(name), where(name));
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
