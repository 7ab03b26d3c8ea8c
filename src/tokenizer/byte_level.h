// The byte-level alphabet of GPT-2: the vocabulary writes every byte as a printable character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

// The character of a byte, in UTF-8 (one or two bytes). Source: bytes_to_unicode of GPT-2's
// encoder.py; must agree with `ByteLevel` of HF tokenizers.
std::string_view byte_level_character(uint8_t byte);

// `bytes` written in the alphabet, e.g. " hello" as "Ġhello".
std::string to_byte_level(std::string_view bytes);

// The bytes of a token. A token with a character outside the alphabet stands for its own UTF-8
// bytes, as in the ByteLevel decoder of HF tokenizers.
std::string from_byte_level(std::string_view token_text);

}  // namespace paceline
