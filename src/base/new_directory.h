// NewDirectory is a directory that appears under its name only when complete. TemporaryDirectory is
// removed at the end.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>

namespace paceline {

// Removes a directory with its content, unless rename_to() gave it another name.
class TemporaryDirectory {
 public:
  // Of the directory that `make` makes and returns, or what `make` throws. The end of the process
  // comes before it or finds the directory.
  explicit TemporaryDirectory(const std::function<std::filesystem::path()>& make);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Throws Error cancelled after remove_temporary_directories(), and invalid when `name` is taken.
  // Neither removal nor renaming sees the other half done.
  void rename_to(const std::filesystem::path& name);

 private:
  std::filesystem::path path_;
};

// Removes all existing temporary directories, before a process ends without destructors. From any
// thread. While the lock is held, other threads neither make nor rename one.
[[nodiscard]] std::unique_lock<std::mutex> remove_temporary_directories();

// Filled under a temporary name beside the final one; removed with its content if destroyed without
// commit().
class NewDirectory {
 public:
  // Throws Error invalid when `path` already exists or can't be made.
  explicit NewDirectory(std::filesystem::path path);

  // The place to write its files.
  const std::filesystem::path& filling_path() const { return temporary_.path(); }
  // Throws as TemporaryDirectory::rename_to() does.
  void commit() { temporary_.rename_to(path_); }

 private:
  std::filesystem::path path_;
  TemporaryDirectory temporary_;
};

}  // namespace paceline
