// The shapes of known models, for random weights.
#pragma once

#include <filesystem>
#include <string_view>

namespace paceline {

// A temporary model directory with nothing but the config.json of a shape; removed at the end.
class ShapeDirectory {
 public:
  // `shape` is one of the choices of --shape (PL_CHECK).
  explicit ShapeDirectory(std::string_view shape);
  ~ShapeDirectory();
  ShapeDirectory(const ShapeDirectory&) = delete;
  ShapeDirectory& operator=(const ShapeDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace paceline
