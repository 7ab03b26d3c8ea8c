// Bodies compressed with Zstandard (Content-Encoding: zstd, RFC 8878 and 9659).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline {

// The body of one frame or several. Stops as soon as it exceeds `max_bytes`; memory beside the body
// is at most the 8 MB window of RFC 9659. Throws RequestError malformed_request, or body_too_large.
std::string decompress_zstd(std::string_view compressed, size_t max_bytes);

}  // namespace paceline
