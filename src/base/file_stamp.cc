#include "base/file_stamp.h"

#include <sys/stat.h>

namespace paceline {
namespace {

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_nsec};
}

}  // namespace

FileStamp file_stamp(const struct stat& status) {
  return {.size_bytes = static_cast<uint64_t>(status.st_size),
          .inode = status.st_ino,
          .modified_ns = nanoseconds(status.st_mtim),
          .changed_ns = nanoseconds(status.st_ctim)};
}

std::optional<FileStamp> file_stamp(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return file_stamp(status);
}

}  // namespace paceline
