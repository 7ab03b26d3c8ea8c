// page_files.inc names the files of src/server/page: PAGE_FILE(number, "/page/NAME", "its path").
#include "server/page_files.h"

#include <algorithm>
#include <vector>

#include "server/page_options.h"

#define PAGE_FILE(number, name, source)                                                        \
  asm(".pushsection .rodata\n"                                                                 \
      ".global paceline_page_begin_" #number "\n.global paceline_page_end_" #number            \
      "\npaceline_page_begin_" #number ":\n.incbin \"" source "\"\npaceline_page_end_" #number \
      ":\n.byte 0\n.popsection\n");                                                            \
  extern "C" const char paceline_page_begin_##number[];                                        \
  extern "C" const char paceline_page_end_##number[];
#include "page_files.inc"
#undef PAGE_FILE

namespace paceline {
namespace {

std::string_view content_type_of(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  return "text/html; charset=utf-8";
}

PageFile page_file(std::string_view path, const char* begin, const char* end) {
  return {.path = path,
          .content_type = content_type_of(path),
          .content = std::string_view(begin, static_cast<size_t>(end - begin))};
}

PageFile options_file() {
  static const std::string content = page_options_module();
  constexpr std::string_view kPath = "/page/options.js";
  return {.path = kPath, .content_type = content_type_of(kPath), .content = content};
}

}  // namespace

std::span<const PageFile> page_files() {
  static const std::vector<PageFile> files = {
#define PAGE_FILE(number, name, source) \
  page_file(name, paceline_page_begin_##number, paceline_page_end_##number),
#include "page_files.inc"
#undef PAGE_FILE
      options_file(),
  };
  return files;
}

const PageFile* find_page_file(std::string_view path) {
  const auto files = page_files();
  if (path == "/") path = "/page/index.html";
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const PageFile& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

HttpResponse page_response(const PageFile& file) {
  return {
      .content_type = std::string(file.content_type),
      .body = std::string(file.content),
      .headers = {{"Cache-Control", "no-cache"},
                  {"Content-Security-Policy",
                   "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                   "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action "
                   "'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
                  {"Cross-Origin-Opener-Policy", "same-origin"},
                  {"Referrer-Policy", "no-referrer"},
                  {"X-Content-Type-Options", "nosniff"}}};
}

}  // namespace paceline
