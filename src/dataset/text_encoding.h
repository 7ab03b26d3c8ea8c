// What files of training data may be written in: UTF-8, with or without a byte order mark.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

void skip_byte_order_mark(std::string& text);

// Throws Error invalid "WHERE: ..." with the first byte that isn't UTF-8.
void check_text_encoding(std::string_view text, std::string_view where);

}  // namespace paceline
