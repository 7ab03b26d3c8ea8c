#include "base/new_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "base/new_file.h"

namespace paceline {

namespace fs = std::filesystem;

NewDirectory::NewDirectory(fs::path path) : path_(std::move(path)) {
  if (!path_.has_filename()) path_ = path_.parent_path();  // "out/" is "out"
  std::error_code error;
  if (fs::exists(fs::symlink_status(path_, error))) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: exists already, and nothing is overwritten", path_.string()));
  }
  temporary_ =
      path_.parent_path() / fmt::format(".{}.{}.partial", path_.filename().string(), ::getpid());
  if (!fs::create_directory(temporary_, error)) {
    throw Error(ErrorCode::invalid,
                fmt::format("{}: can't be made: {}", path_.string(),
                            error ? error.message() : temporary_.string() + " is in the way"));
  }
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
}

void NewDirectory::commit() {
  rename_to_new(temporary_, path_);
  committed_ = true;
}

}  // namespace paceline
