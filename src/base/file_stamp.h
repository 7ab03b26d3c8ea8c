// FileStamp identifies a version of a file: it changes whenever the content does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

struct stat;

namespace paceline {

// Times are nanoseconds since 1970. ctime can't be set by hand, mtime can: restoring the old mtime
// after a change is detected.
struct FileStamp {
  uint64_t size_bytes = 0;
  uint64_t inode = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

FileStamp file_stamp(const struct stat& status);

// The stamp of the file at `path`, links followed; nullopt when there is none.
std::optional<FileStamp> file_stamp(const std::filesystem::path& path);

}  // namespace paceline
