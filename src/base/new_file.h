// NewFile is a file that appears under its name only when complete, and replaces another only on
// request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace paceline {

// Written in the same directory without a name, or under a temporary one (.NAME.*.partial) where
// the file system has no other way; destroyed without commit() it leaves nothing behind. Errors
// carry the path and the system's reason: exhausted when a write fails.
class NewFile {
 public:
  enum class Existing : bool { refuse, replace };

  // Throws Error invalid when no file can be made there, or one exists and `existing` forbids to
  // replace it.
  explicit NewFile(std::filesystem::path path, Existing existing = Existing::refuse);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void append(std::span<const std::byte> bytes);
  // Replaces bytes that were appended before.
  void overwrite(uint64_t at, std::span<const std::byte> bytes);
  // Reserves `bytes` in total on the disk, where the file system supports it. Throws Error
  // exhausted when there is no space, or files of that size exceed the process's limit (writing one
  // would end it with SIGXFSZ).
  void reserve(uint64_t bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  // Syncs the content to the disk, then names the file.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  void flush();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Existing existing_;
  bool has_name_ = false;
  int fd_ = -1;
  std::string pending_;
  uint64_t size_bytes_ = 0;
};

// Writes `text` to a new file. Throws what NewFile throws.
void write_new_file(const std::filesystem::path& path, std::string_view text);

// Renames a complete file or directory, and syncs the directory that holds it.
void rename_over(const std::filesystem::path& from, const std::filesystem::path& to);
// The same; Error invalid when the new name exists.
void rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace paceline
