// DatasetFiles is where a set of training data has its parts.
#pragma once

#include <filesystem>
#include <optional>

namespace paceline {

struct DatasetFiles {
  std::filesystem::path train;
  std::optional<std::filesystem::path> valid;
  std::optional<std::filesystem::path> test;
};

// A file is all for training; of a directory it is train.jsonl, and beside it valid.jsonl and
// test.jsonl if they are there, as mlx_lm.lora reads --data; .json stands in for a missing .jsonl.
// Throws Error not_found when there is no such file or directory, or no train.jsonl in it.
DatasetFiles find_dataset_files(const std::filesystem::path& path);

}  // namespace paceline
