#include "dataset/text_encoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace paceline {

void skip_byte_order_mark(std::string& text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
}

void check_text_encoding(std::string_view text, std::string_view where) {
  if (is_valid_utf8(text)) return;
  size_t at = 0, line = 1, line_begin = 0;
  while (at < text.size()) {
    const DecodedCodePoint decoded = decode_utf8(text.substr(at));
    if (!decoded.valid) break;
    at += decoded.size;
    if (decoded.code_point == '\n') {
      ++line;
      line_begin = at;
    }
  }
  const bool is_utf16 = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
  throw Error(ErrorCode::invalid,
              fmt::format("{}: found byte 0x{:02X} at line {}, byte {}, expected UTF-8{}", where,
                          static_cast<uint8_t>(text[at]), line, at - line_begin + 1,
                          is_utf16 ? " (it begins as UTF-16 does; convert it with iconv)" : ""));
}

}  // namespace paceline
