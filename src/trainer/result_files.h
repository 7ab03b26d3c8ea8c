// ResultFiles is what a run leaves of its trained parameters: the files of an adapter or a model.
#pragma once

#include <filesystem>

namespace paceline {

class ResultFiles {
 public:
  virtual ~ResultFiles() = default;

  // Writes the parameters, as they are served, to a directory that has none of the files. Throws
  // what NewFile throws.
  virtual void write(const std::filesystem::path& directory) const = 0;
};

}  // namespace paceline
