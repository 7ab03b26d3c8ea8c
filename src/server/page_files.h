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
// Of "/" the page itself; nullptr when there is none.
const PageFile* find_page_file(std::string_view path);
// May be shown nowhere but here, and load nothing from elsewhere.
HttpResponse page_response(const PageFile& file);

}  // namespace paceline
