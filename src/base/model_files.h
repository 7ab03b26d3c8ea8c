// A model's small files by name (config.json, tokenizer.json, ...): a directory's, or generated.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace paceline {

// The largest config.json, generation_config.json or tokenizer_config.json that is read.
inline constexpr size_t kMaxConfigBytes = size_t{8} << 20;

// The files of a directory, or texts that are generated on request.
class ModelFiles {
 public:
  using Makers = std::map<std::string, std::function<std::string()>, std::less<>>;

  ModelFiles(std::filesystem::path directory) : origin_(std::move(directory)) {}  // not explicit
  // `origin` is the source of the texts, for messages. Makers may throw Error.
  ModelFiles(std::filesystem::path origin, Makers makers)
      : origin_(std::move(origin)), makers_(std::move(makers)), is_directory_(false) {}

  // Adds a text that stands for the file `name` where the directory lacks it; `source` is the file
  // that it is made of.
  void add_made(std::string name, std::string source, std::function<std::string()> make);

  // The directory, or the source of the texts.
  const std::filesystem::path& origin() const { return origin_; }
  // The file's name in messages.
  std::string where(std::string_view name) const;

  bool contains(std::string_view name) const;
  // Throws Error not_found, or invalid when it has more than `max_bytes`.
  std::string read(std::string_view name, size_t max_bytes) const;
  // The text of a small JSON file. Python writes Infinity and NaN, which aren't JSON: they become
  // objects {"__float__": "Infinity"}, as transformers 5 writes them.
  std::string read_config(std::string_view name) const;
  // The same, parsed; what isn't JSON is an Error invalid.
  Json read_json(std::string_view name) const;
  // "FOLDER/NAME" of the files with this extension (".jinja") in a folder, sorted.
  std::vector<std::string> names_in(std::string_view folder, std::string_view extension) const;

 private:
  std::filesystem::path origin_;
  Makers makers_;
  std::map<std::string, std::string, std::less<>> sources_;  // of a directory's makers
  bool is_directory_ = true;
};

}  // namespace paceline
