#include "load/copied_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/new_file.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

bool is_kept(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == "config.json" || name.ends_with(".index.json")) return false;
  if (name.starts_with("LICENSE") || name.starts_with("NOTICE")) return true;
  constexpr std::string_view kExtensions[] = {".json", ".jinja", ".model", ".txt"};
  return std::ranges::find(kExtensions, path.extension().string()) != std::end(kExtensions);
}

}  // namespace

void copy_model_files(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::directory_iterator at(from, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    if (!is_kept(at->path()) || !at->is_regular_file()) continue;
    NewFile copy(to / at->path().filename());
    copy.append(MappedFile(at->path()).bytes());
    copy.commit();
  }
  if (error) {
    throw Error(ErrorCode::not_found,
                fmt::format("{}: can't be listed: {}", from.string(), error.message()));
  }
}

}  // namespace paceline
