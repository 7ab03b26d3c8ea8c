// Paths of the repository's files, for tests that read goldens or the bundled model.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace paceline {

// The absolute path of a path from the repository's root, such as "models/paceline-10m".
inline std::string source_path(std::string_view relative) {
  return (std::filesystem::path(PACELINE_SOURCE_DIR) / relative).string();
}

}  // namespace paceline
