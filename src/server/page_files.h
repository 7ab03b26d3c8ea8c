// The page's files, as the binary carries them.
#pragma once

#include <span>
#include <string_view>

namespace paceline {

struct PageFile {
  std::string_view path;  // "/page/main.js"
  std::string_view content_type;
  std::string_view content;
};

std::span<const PageFile> page_files();
// nullptr when there is none.
const PageFile* find_page_file(std::string_view path);

}  // namespace paceline
