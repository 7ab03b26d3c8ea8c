#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace paceline {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> values_of_digits() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  }
  return values;
}

constexpr std::array<int8_t, 256> kValues = values_of_digits();

}  // namespace

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool is_last = i + 4 == text.size();
    size_t padding = 0;
    while (is_last && padding < 2 && text[i + 3 - padding] == '=') ++padding;
    uint32_t bits = 0;
    for (size_t j = 0; j < 4 - padding; ++j) {
      const int value = kValues[static_cast<uint8_t>(text[i + j])];
      if (value < 0) return std::nullopt;
      bits |= static_cast<uint32_t>(value) << (18 - 6 * j);
    }
    for (size_t j = 0; j < 3 - padding; ++j) bytes += static_cast<char>(bits >> (16 - 8 * j));
  }
  return bytes;
}

std::string base64_of_bytes(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < count; ++j) {
      bits |= uint32_t{static_cast<uint8_t>(bytes[i + j])} << (16 - 8 * j);
    }
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[(bits >> (18 - 6 * j)) & 63] : '=';
  }
  return text;
}

}  // namespace paceline
