// RunDirectory is the directory that a run writes to, kept for one process.
#pragma once

#include <filesystem>

namespace paceline {

class RunDirectory {
 public:
  enum class Begins : bool { anew, resumed };

  // Makes a directory that isn't there. Of a resumed run, removes the files that a killed process
  // left half written. Throws Error invalid when a new run finds files, when another process trains
  // in the directory, or when it can't be made.
  RunDirectory(std::filesystem::path path, Begins begins);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  void lock();
  void remove_unfinished() const;

  std::filesystem::path path_;
  int descriptor_ = -1;  // holds the lock
};

}  // namespace paceline
