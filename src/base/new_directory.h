// NewDirectory is a directory that appears under its name only when complete.
#pragma once

#include <filesystem>

namespace paceline {

// It is filled under a temporary name beside the final one. Destroyed without commit(), it is
// removed with its content.
class NewDirectory {
 public:
  // Throws Error invalid when there is something under `path` already or none can be made there.
  explicit NewDirectory(std::filesystem::path path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  // Write its files here.
  const std::filesystem::path& filling_path() const { return temporary_; }
  // Throws Error invalid when the name was taken meanwhile.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  bool committed_ = false;
};

}  // namespace paceline
