#include "tools/text_units.h"

#include <algorithm>

namespace paceline {
namespace {

constexpr size_t kMaxTagBytes = 64;
constexpr std::string_view kBlanks = " \t\n\r";

bool is_digit_byte(char c) { return '0' <= c && c <= '9'; }
bool is_capital(char c) { return 'A' <= c && c <= 'Z'; }
bool is_word_byte(char c) {
  return is_digit_byte(c) || is_capital(c) || ('a' <= c && c <= 'z') || c == '_';
}

// "<...>" on one line, without another "<" in it.
size_t angle_tag_bytes(std::string_view text) {
  if (text.size() < 3 || text[0] != '<' || is_blank(text[1])) return 0;
  const size_t end = text.substr(0, kMaxTagBytes).find_first_of("<>\n", 1);
  return end != std::string_view::npos && end > 1 && text[end] == '>' ? end + 1 : 0;
}

// "[ARGS]", "[/THINK]", "[BEGIN FINAL RESPONSE]": capitals only, at least two.
size_t square_tag_bytes(std::string_view text) {
  if (text.empty() || text[0] != '[') return 0;
  size_t at = 1;
  if (at < text.size() && text[at] == '/') ++at;
  const size_t first = at;
  while (at < text.size() && at < kMaxTagBytes &&
         (is_capital(text[at]) || (at > first && (text[at] == '_' || text[at] == ' ')))) {
    ++at;
  }
  return at - first >= 2 && at < text.size() && text[at] == ']' ? at + 1 : 0;
}

size_t unit_bytes(std::string_view text) {
  if (const size_t tag = std::max(angle_tag_bytes(text), square_tag_bytes(text)); tag > 0) {
    return tag;
  }
  const auto run = [&](bool (*is_part)(char)) {
    return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_part) - text.begin());
  };
  if (is_digit_byte(text[0])) {
    const size_t digits = run(is_digit_byte);
    if (digits == run(is_word_byte)) return digits;
  }
  return std::max<size_t>(1, run(is_word_byte));
}

}  // namespace

std::vector<std::string_view> text_units(std::string_view text) {
  std::vector<std::string_view> units;
  while (!text.empty()) {
    units.push_back(text.substr(0, unit_bytes(text)));
    text.remove_prefix(units.back().size());
  }
  return units;
}

bool is_tag(std::string_view unit) {
  return unit.size() > 2 && unit_bytes(unit) == unit.size() && (unit[0] == '<' || unit[0] == '[');
}

bool is_digits(std::string_view unit) {
  return !unit.empty() && std::all_of(unit.begin(), unit.end(), is_digit_byte);
}

std::string_view common_prefix(std::string_view first, std::string_view second) {
  const auto a = text_units(first);
  const auto b = text_units(second);
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  size_t bytes = 0;
  for (auto unit = a.begin(); unit != end; ++unit) bytes += unit->size();
  return first.substr(0, bytes);
}

std::string_view common_suffix(std::string_view first, std::string_view second) {
  const auto a = text_units(first);
  const auto b = text_units(second);
  const auto [end, other] = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  size_t bytes = 0;
  for (auto unit = a.rbegin(); unit != end; ++unit) bytes += unit->size();
  return first.substr(first.size() - bytes);
}

bool is_blank(char byte) { return kBlanks.find(byte) != std::string_view::npos; }
bool is_blank(std::string_view text) { return trimmed_left(text).empty(); }

std::string_view trimmed_left(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
}

std::string_view trimmed_right(std::string_view text) {
  const size_t last = text.find_last_not_of(kBlanks);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string_view trimmed(std::string_view text) { return trimmed_left(trimmed_right(text)); }

size_t partial_suffix(std::string_view text, std::string_view mark) {
  if (mark.empty()) return 0;
  for (size_t bytes = std::min(text.size(), mark.size() - 1); bytes > 0; --bytes) {
    if (text.substr(text.size() - bytes) == mark.substr(0, bytes)) return bytes;
  }
  return 0;
}

}  // namespace paceline
