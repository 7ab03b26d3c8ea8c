// NewDirectory is a directory that stands under its name only once it is whole.
#pragma once

#include <filesystem>

namespace paceline {

// Filled under a temporary name beside the final one; destroyed without commit() it is removed with
// all that is in it.
class NewDirectory {
 public:
  // Throws Error invalid when there is something under `path` already or none can be made there.
  explicit NewDirectory(std::filesystem::path path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  // Where its files are to be written.
  const std::filesystem::path& filling_path() const { return temporary_; }
  // Throws Error invalid when something has taken the name since.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

}  // namespace paceline
