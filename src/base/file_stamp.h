// FileStamp tells a file from what it was before: it changes whenever the file's content does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

struct stat;

namespace paceline {

// The times are nanoseconds since 1970. The time of the last change (ctime) can't be set by hand,
// as that of the last modification can: who writes other bytes and puts the old time back is seen.
struct FileStamp {
  uint64_t size_bytes = 0;
  uint64_t inode = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;

  bool operator==(const FileStamp&) const = default;
};

FileStamp file_stamp(const struct stat& status);

// Of what the path leads to; nothing when it leads nowhere.
std::optional<FileStamp> file_stamp(const std::filesystem::path& path);

}  // namespace paceline
