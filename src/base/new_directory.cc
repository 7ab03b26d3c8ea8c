#include "base/new_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/new_file.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

struct TemporaryDirectories {
  std::mutex mutex;
  std::set<fs::path> paths;  // guarded by mutex
};

// Never destroyed: it is used until the process ends.
TemporaryDirectories& temporary_directories() {
  static auto* const all = new TemporaryDirectories;
  return *all;
}

// Another thread may still be writing into it; then the second try finds the rest.
void remove_directory(const fs::path& path) {
  constexpr int kTries = 5;
  std::error_code error;
  for (int i = 0; i < kTries && fs::exists(path, error); ++i) fs::remove_all(path, error);
}

fs::path without_final_slash(fs::path path) {
  return path.has_filename() ? path : path.parent_path();  // "out/" is "out"
}

// Beside `path`, where there must be nothing yet.
fs::path make_filling_directory(const fs::path& path) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error))) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: exists already, and nothing is overwritten", path.string()));
  }
  fs::path temporary =
      path.parent_path() / fmt::format(".{}.{}.partial", path.filename().string(), ::getpid());
  if (!fs::create_directory(temporary, error)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: can't be made: {}", path.string(),
                            error ? error.message() : temporary.string() + " is in the way"));
  }
  return temporary;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(const std::function<fs::path()>& make) {
  TemporaryDirectories& all = temporary_directories();
  const std::lock_guard lock(all.mutex);
  path_ = make();
  all.paths.insert(path_);
}

TemporaryDirectory::~TemporaryDirectory() {
  TemporaryDirectories& all = temporary_directories();
  const std::lock_guard lock(all.mutex);
  if (all.paths.erase(path_) > 0) remove_directory(path_);
}

void TemporaryDirectory::rename_to(const fs::path& name) {
  TemporaryDirectories& all = temporary_directories();
  const std::lock_guard lock(all.mutex);
  if (!all.paths.contains(path_)) {
    throw Error(ErrorCode::cancelled, fmt::format("{}: interrupted; not written", name.string()));
  }
  rename_to_new(path_, name);
  all.paths.erase(path_);
}

std::unique_lock<std::mutex> remove_temporary_directories() {
  TemporaryDirectories& all = temporary_directories();
  std::unique_lock lock(all.mutex);
  for (const fs::path& path : all.paths) remove_directory(path);
  all.paths.clear();
  return lock;
}

NewDirectory::NewDirectory(fs::path path)
    : path_(without_final_slash(std::move(path))),
      temporary_([this] { return make_filling_directory(path_); }) {}

}  // namespace paceline
