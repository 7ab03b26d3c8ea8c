#include "tokenizer/byte_level.h"

#include <array>

#include "base/utf8.h"

namespace paceline {
namespace {

constexpr char32_t kFirstStandIn =
    0x100;  // bytes that aren't printable get U+0100, U+0101, ... in order

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int16_t, 0x200> bytes;  // by code point; -1: stands for no byte

  Alphabet() {
    bytes.fill(-1);
    char32_t stand_in = kFirstStandIn;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t character = is_printable(byte) ? byte : stand_in++;
      append_utf8(characters[byte], character);
      bytes[character] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet shared;
  return shared;
}

}  // namespace

std::string_view byte_level_character(uint8_t byte) { return alphabet().characters[byte]; }

std::string to_byte_level(std::string_view bytes) {
  const Alphabet& letters = alphabet();
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) text += letters.characters[static_cast<uint8_t>(byte)];
  return text;
}

std::string from_byte_level(std::string_view token_text) {
  const Alphabet& letters = alphabet();
  std::string bytes;
  bytes.reserve(token_text.size());
  for (std::string_view rest = token_text; !rest.empty();) {
    const DecodedCodePoint character = decode_utf8(rest);
    const bool known = character.valid && character.code_point < letters.bytes.size() &&
                       letters.bytes[character.code_point] >= 0;
    if (!known) return std::string(token_text);
    bytes.push_back(static_cast<char>(letters.bytes[character.code_point]));
    rest.remove_prefix(character.size);
  }
  return bytes;
}

}  // namespace paceline
