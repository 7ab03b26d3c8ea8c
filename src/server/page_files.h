// The web page's files, embedded in the binary.
#pragma once

#include <span>
#include <string_view>

#include "http/http.h"

namespace paceline {

struct PageFile {
  std::string_view path;  // "/page/main.js"
  std::string_view content_type;
  std::string_view content;
};

std::span<const PageFile> page_files();
// For "/" the page itself; nullptr for an unknown path.
const PageFile* find_page_file(std::string_view path);
// With headers that keep the page out of frames and let it load nothing from elsewhere. Text never
// becomes markup or script in it: the browser refuses that (trusted types).
HttpResponse page_response(const PageFile& file);

}  // namespace paceline
