#include "http/request_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "http/field.h"
#include "http/head.h"
#include "http/target.h"

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

// Throws HttpRefusal 400 where two readers could disagree about the length (RFC 9112, sections 3.2,
// 6.1 and 6.3: two lengths, two codings or both, a coding other than chunked, none or several Host
// in HTTP/1.1), 413 for a length over `max_body_bytes`.
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

}  // namespace

size_t HttpRequestReader::take(std::string_view bytes) {
  try {
    if (state_ == State::head) return take_head(bytes);
    if (state_ == State::body) return take_body(bytes);
  } catch (const HttpRefusal& refusal) {
    refusal_ = refusal;
    state_ = State::refused;
  }
  return 0;
}

size_t HttpRequestReader::take_head(std::string_view bytes) {
  has_begun_ = has_begun_ || !bytes.empty();
  const size_t taken = head_check_.take(bytes);
  head_.append(bytes.substr(0, taken));
  if (head_check_.is_whole()) read_head();
  return taken;
}

void HttpRequestReader::read_head() {
  std::string_view text = head_;
  if (text.starts_with("\r\n")) text.remove_prefix(2);
  HttpHead head = parse_http_head(text);
  std::string().swap(head_);

  is_head_ = head.method == "HEAD";
  version_minor_ = head.version_minor;
  HttpTarget target = parse_http_target(head.target);
  request_.method = is_head_ ? "GET" : std::move(head.method);
  request_.path = std::move(target.path);
  framing_ = read_http_framing(head, limits_->max_body_bytes);
  request_.query = std::move(target.query);
  request_.authority = std::move(target.authority);
  request_.headers = join_http_fields(std::move(head.fields));
  state_ = State::gate;
}

void HttpRequestReader::accept_body() {
  if (framing_.is_chunked) chunks_.emplace(limits_->max_body_bytes, limits_->max_header_bytes);
  state_ = framing_.has_body() ? State::body : State::done;
}

size_t HttpRequestReader::take_body(std::string_view bytes) {
  size_t taken = 0;
  if (chunks_) {
    taken = chunks_->take(bytes, request_.body);
    if (chunks_->is_whole()) state_ = State::done;
  } else {
    const uint64_t missing = framing_.content_length - request_.body.size();
    taken = static_cast<size_t>(std::min<uint64_t>(missing, bytes.size()));
    request_.body.append(bytes.substr(0, taken));
    if (taken == missing) state_ = State::done;
  }
  return taken;
}

}  // namespace paceline
