// UTF-8: decoding by code point, validity, and incomplete sequences at the end of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

constexpr char32_t kReplacementCharacter = 0xFFFD;

struct DecodedCodePoint {
  char32_t code_point = 0;
  uint8_t size = 0;    // bytes consumed, at least 1
  bool valid = false;  // false: code_point is U+FFFD for a maximal ill-formed subpart (Unicode 3.9)
};

// Decodes the first code point of `text`, which must not be empty.
DecodedCodePoint decode_utf8(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

bool is_valid_utf8(std::string_view text);

// `text` with every maximal ill-formed subpart replaced by U+FFFD, as Rust's from_utf8_lossy and
// Python's errors="replace" do.
std::string replace_invalid_utf8(std::string_view text);

// `text` must be well-formed.
int64_t count_code_points(std::string_view text);

// The number of bytes at the end of `text` that further bytes could complete to a code point.
size_t incomplete_utf8_suffix(std::string_view text);

}  // namespace paceline
