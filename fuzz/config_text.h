// What holds for every text that a parser of configuration files takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/config_entry.h"

namespace paceline::fuzz {

// The text is refused with its place, or has entries on ascending lines that are the same again
// when they are written and read. parse(text, where), written(entries).
template <class Parse, class Write>
void check_config_text(const uint8_t* bytes, size_t size, Parse&& parse, Write&& written) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  std::vector<ConfigEntry> entries;
  try {
    entries = parse(text, "input");
  } catch (const Error& error) {
    PL_CHECK(error.code() == ErrorCode::invalid || error.code() == ErrorCode::unsupported,
             "an error of another kind");
    PL_CHECK(std::string_view(error.what()).starts_with("input:"), "an error without its place");
    PL_CHECK(is_valid_utf8(error.what()), "an error that isn't UTF-8");
    return;
  }
  const auto num_lines = 1 + std::count(text.begin(), text.end(), '\n');
  int last_line = 0;
  for (const ConfigEntry& entry : entries) {
    PL_CHECK(entry.line > last_line && entry.line <= num_lines, "lines out of order");
    last_line = entry.line;
  }
  const std::string again = written(entries);
  PL_CHECK(written(parse(again, "again")) == again, "written and read, it differs");
}

}  // namespace paceline::fuzz
