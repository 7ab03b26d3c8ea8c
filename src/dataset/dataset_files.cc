#include "dataset/dataset_files.h"

#include "base/error.h"

namespace paceline {

namespace fs = std::filesystem;

DatasetFiles find_dataset_files(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) {
    throw Error(ErrorCode::not_found,
                path.string() +
                    ": no such file or directory; training data is a .jsonl or .json "
                    "file, a text file, or a directory with train.jsonl");
  }
  if (!fs::is_directory(status)) return {.train = path, .valid = {}, .test = {}};
  const auto part = [&](const std::string& name) -> std::optional<fs::path> {
    for (const char* const extension : {".jsonl", ".json"}) {
      const fs::path file = path / (name + extension);
      if (fs::exists(file, ignored)) return file;
    }
    return std::nullopt;
  };
  const std::optional<fs::path> train = part("train");
  if (!train) {
    throw Error(ErrorCode::not_found, path.string() +
                                          ": found no train.jsonl, expected it in a "
                                          "directory of training data");
  }
  return {.train = *train, .valid = part("valid"), .test = part("test")};
}

}  // namespace paceline
