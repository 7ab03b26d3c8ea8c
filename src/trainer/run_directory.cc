#include "trainer/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

Error refused(const fs::path& path, std::string_view why) {
  return Error(ErrorCode::invalid, fmt::format("{}: {}", path.string(), why));
}

}  // namespace

RunDirectory::RunDirectory(fs::path path, Begins begins) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error)) {
    throw refused(path_, "found a file, expected a directory to write to");
  }
  fs::create_directories(path_, error);
  if (error) throw refused(path_, error.message());
  if (begins == Begins::anew && !fs::is_empty(path_, error)) {
    throw refused(path_, "has files already: give a new directory, or --resume the run in it");
  }
  lock();
  if (begins == Begins::resumed) remove_unfinished();
}

RunDirectory::~RunDirectory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// File systems without locks keep nobody out.
void RunDirectory::lock() {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    return;
  }
  ::close(descriptor_);
  descriptor_ = -1;
  throw refused(path_, "another `paceline train` is writing to it");
}

// NewFile and NewDirectory call them so.
void RunDirectory::remove_unfinished() const {
  std::error_code ignored;  // those that stay do no harm
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && name.ends_with(".partial")) unfinished.push_back(entry.path());
  }
  for (const fs::path& path : unfinished) fs::remove_all(path, ignored);
}

}  // namespace paceline
