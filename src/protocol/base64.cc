#include "protocol/base64.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

namespace paceline {

std::string base64_of(std::span<const float> elements) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr size_t kGroup = 3;  // bytes, four digits
  std::vector<uint8_t> bytes;
  bytes.reserve(elements.size_bytes() + kGroup);
  for (const float element : elements) {
    const auto bits = std::bit_cast<uint32_t>(element);
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(bits >> shift));
  }
  const size_t num_padding = (kGroup - bytes.size() % kGroup) % kGroup;
  bytes.resize(bytes.size() + num_padding);
  std::string text;
  text.reserve(bytes.size() / kGroup * 4);
  for (size_t i = 0; i < bytes.size(); i += kGroup) {
    const uint32_t group =
        (uint32_t{bytes[i]} << 16) | (uint32_t{bytes[i + 1]} << 8) | bytes[i + 2];
    for (const int shift : {18, 12, 6, 0}) text += kDigits[(group >> shift) & 63];
  }
  for (size_t i = 0; i < num_padding; ++i) text[text.size() - 1 - i] = '=';
  return text;
}

}  // namespace paceline
