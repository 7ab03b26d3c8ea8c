#include "http/framing.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "http/field.h"
#include "http/refusal.h"

namespace paceline {
namespace {

// The value of the only line of this name, nullptr without one.
const std::string* only_line(const HttpHead& head, std::string_view name) {
  const std::string* value = nullptr;
  for (const HttpHeader& field : head.fields) {
    if (!same_http_token(field.name, name)) continue;
    if (value != nullptr) throw HttpRefusal(400, std::string(name) + " is there more than once");
    value = &field.value;
  }
  return value;
}

bool any_line_has(const HttpHead& head, std::string_view name, std::string_view token) {
  return std::any_of(head.fields.begin(), head.fields.end(), [&](const HttpHeader& field) {
    return same_http_token(field.name, name) && http_list_has(field.value, token);
  });
}

uint64_t parse_length(const std::string& text, uint64_t max_body_bytes) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) {
    throw HttpRefusal(400, "Content-Length must be a number");
  }
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc{} || length > max_body_bytes) {
    throw HttpRefusal(
        413, "the body is too long: the limit is " + std::to_string(max_body_bytes) + " bytes");
  }
  return length;
}

}  // namespace

HttpFraming read_http_framing(const HttpHead& head, uint64_t max_body_bytes) {
  const std::string* const host = only_line(head, "Host");
  const std::string* const length = only_line(head, "Content-Length");
  const std::string* const coding = only_line(head, "Transfer-Encoding");
  const bool is_1_1 = head.version_minor >= 1;
  if (is_1_1 && host == nullptr) throw HttpRefusal(400, "HTTP/1.1 needs a Host header");
  if (length != nullptr && coding != nullptr) {
    throw HttpRefusal(400, "both Content-Length and Transfer-Encoding");
  }
  if (coding != nullptr && !is_1_1) {
    throw HttpRefusal(400, "Transfer-Encoding is of HTTP/1.1, the request of HTTP/1.0");
  }
  if (coding != nullptr && !same_http_token(*coding, "chunked")) {
    throw HttpRefusal(400, "the only Transfer-Encoding known is chunked");
  }
  const bool close = any_line_has(head, "Connection", "close");
  const bool keep = is_1_1 || any_line_has(head, "Connection", "keep-alive");
  return {.content_length = length == nullptr ? 0 : parse_length(*length, max_body_bytes),
          .is_chunked = coding != nullptr,
          .keep_alive = keep && !close,
          .expects_continue = is_1_1 && any_line_has(head, "Expect", "100-continue")};
}

}  // namespace paceline
