#include "http/request_reader.h"

#include <algorithm>
#include <utility>

#include "http/field.h"
#include "http/head.h"
#include "http/target.h"

namespace paceline {

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
  framing_ = read_http_framing(head, limits_->max_body_bytes);
  HttpTarget target = parse_http_target(head.target);
  request_.method = is_head_ ? "GET" : std::move(head.method);
  request_.path = std::move(target.path);
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
