// The escapes of a string literal.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// What Python's "unicode-escape" codec makes of the text between the quotes. Throws TemplateError
// for an escape that is cut short.
std::string unescape_string(std::string_view text);

}  // namespace paceline
