#include "protocol/client_counters.h"

#include <algorithm>
#include <cctype>

namespace paceline {
namespace {

std::string_view without_end_blanks(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  return text.substr(0, last + 1);  // npos + 1 is 0
}

// Cuts `end` off, and blanks in front of it.
bool cut_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text = without_end_blanks(text.substr(0, text.size() - end.size()));
  return true;
}

}  // namespace

std::string_view without_billing_line(std::string_view text) {
  if (!text.starts_with("x-anthropic-billing-header:")) return text;
  const size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

std::string_view without_countdown(std::string_view text) {
  constexpr std::string_view kBegin = "<total_tokens>";
  std::string_view rest = without_end_blanks(text);
  const bool is_reminder = cut_end(rest, "</system-reminder>");
  if (!cut_end(rest, "tokens left</total_tokens>")) return text;
  const size_t begin = rest.rfind(kBegin);
  if (begin == std::string_view::npos) return text;
  const std::string_view count = rest.substr(begin + kBegin.size());  // digits, or Infinite
  if (!std::all_of(count.begin(), count.end(),
                   [](unsigned char byte) { return std::isalnum(byte) != 0 || byte == ','; })) {
    return text;
  }
  rest = without_end_blanks(rest.substr(0, begin));
  return is_reminder && !cut_end(rest, "<system-reminder>") ? text : rest;
}

}  // namespace paceline
