#include "base/utf8.h"

#include <simdjson.h>

#include <algorithm>

namespace paceline {
namespace {

constexpr size_t kLongText = 64;  // bytes; vectors are faster from here on

// The sequence that a lead byte begins: its length and the allowed range of the second byte
// (Unicode 15, table 3-7).
struct Lead {
  uint8_t size;  // 0: not a lead byte
  uint8_t second_min;
  uint8_t second_max;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
  return {0, 0, 0};
}

// How many bytes of `text` agree with the sequence its lead byte begins (at least 1).
size_t matched_prefix(std::string_view text, Lead lead) {
  size_t matched = 1;
  while (matched < lead.size && matched < text.size()) {
    const auto byte = static_cast<uint8_t>(text[matched]);
    const uint8_t low = matched == 1 ? lead.second_min : 0x80;
    const uint8_t high = matched == 1 ? lead.second_max : 0xBF;
    if (byte < low || byte > high) break;
    ++matched;
  }
  return matched;
}

}  // namespace

DecodedCodePoint decode_utf8(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = lead_of(first);
  if (lead.size == 0) return {kReplacementCharacter, 1, false};
  const size_t matched = matched_prefix(text, lead);
  if (matched < lead.size) return {kReplacementCharacter, static_cast<uint8_t>(matched), false};
  char32_t code_point = first & (0xFFu >> (lead.size + 1));
  for (size_t i = 1; i < lead.size; ++i) {
    code_point = (code_point << 6) | (static_cast<uint8_t>(text[i]) & 0x3Fu);
  }
  return {code_point, lead.size, true};
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  if (text.size() >= kLongText) return simdjson::validate_utf8(text);
  while (!text.empty()) {
    const DecodedCodePoint decoded = decode_utf8(text);
    if (!decoded.valid) return false;
    text.remove_prefix(decoded.size);
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const DecodedCodePoint decoded = decode_utf8(text);
    if (decoded.valid) {
      out.append(text.substr(0, decoded.size));
    } else {
      append_utf8(out, kReplacementCharacter);
    }
    text.remove_prefix(decoded.size);
  }
  return out;
}

size_t incomplete_utf8_suffix(std::string_view text) {
  const size_t longest = std::min<size_t>(3, text.size());
  for (size_t length = 1; length <= longest; ++length) {
    const std::string_view tail = text.substr(text.size() - length);
    const Lead lead = lead_of(static_cast<uint8_t>(tail[0]));
    if (lead.size > length) return matched_prefix(tail, lead) == length ? length : 0;
    if (lead.size != 0) return 0;
  }
  return 0;
}

int64_t count_code_points(std::string_view text) {
  constexpr unsigned kContinuationMask = 0xC0, kContinuation = 0x80;
  return std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & kContinuationMask) != kContinuation;
  });
}

}  // namespace paceline
