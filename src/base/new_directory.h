// NewDirectory is a directory that appears under its name only when complete. TemporaryDirectory is
// removed at the end.
#pragma once

#include <filesystem>

namespace paceline {

// Removes a directory with all that is in it, unless keep() was called.
class TemporaryDirectory {
 public:
  // `path` has just been made.
  explicit TemporaryDirectory(std::filesystem::path path);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void keep();

 private:
  std::filesystem::path path_;
};

// Removes those that exist, for a process that is about to end without destructors. From any
// thread.
void remove_temporary_directories();

// It is filled under a temporary name beside the final one. Destroyed without commit(), it is
// removed with its content.
class NewDirectory {
 public:
  // Throws Error invalid when there is something under `path` already or none can be made there.
  explicit NewDirectory(std::filesystem::path path);

  // Write its files here.
  const std::filesystem::path& filling_path() const { return temporary_.path(); }
  // Throws Error invalid when the name was taken meanwhile.
  void commit();

 private:
  std::filesystem::path path_;
  TemporaryDirectory temporary_;
};

}  // namespace paceline
