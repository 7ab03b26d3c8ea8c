// Base64 (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paceline {

// Nothing for a text that isn't base64 with its padding.
std::optional<std::string> bytes_of_base64(std::string_view text);
std::string base64_of_bytes(std::string_view bytes);

}  // namespace paceline
