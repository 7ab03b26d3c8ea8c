// A file mapped read-only into memory for the lifetime of the object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/bus_error.h"
#include "base/file_stamp.h"

namespace paceline {

class MappedFile {
 public:
  // Throws Error not_found / invalid naming the path and the system's reason. An empty file maps to
  // an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {bytes_, size_}; }
  const std::filesystem::path& path() const { return path_; }
  // The stamp of the file when it was opened.
  const FileStamp& stamp() const { return stamp_; }

  // Gives the pages that lie wholly inside `part` back to the system; they stay readable and are
  // read from the file again when touched. Used after weights were packed.
  void release_pages(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  FileStamp stamp_;
  const std::byte* bytes_ = nullptr;
  size_t size_ = 0;
  MappingName name_;
};

// The whole file as a string. Throws Error not_found, or invalid when it has more than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, size_t max_bytes);

}  // namespace paceline
