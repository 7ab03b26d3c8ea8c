#include "http/head.h"

#include <boost/beast/http/basic_parser.hpp>
#include <string>

#include "http/field.h"
#include "http/refusal.h"

namespace paceline {
namespace {

constexpr size_t kMaxMethodBytes = 32;
constexpr size_t kVersionBytes = 8;  // "HTTP/1.1"
constexpr size_t kLineEndBytes = 2;

bool is_space(char c) { return c == ' ' || c == '\t'; }

namespace beast = boost::beast;

// Beast's parser, stopped at the end of the head.
class HeadParser final : public beast::http::basic_parser<true> {
 public:
  explicit HeadParser(HttpHead& head) : head_(head) {}

 private:
  using Text = beast::string_view;
  using ErrorCode = beast::error_code;

  void on_request_impl(beast::http::verb /*method*/, Text method, Text target, int version,
                       ErrorCode& /*error*/) override {
    head_.method = method;
    head_.target = target;
    head_.version_minor = version % 10;
  }
  void on_field_impl(beast::http::field /*name*/, Text name, Text value,
                     ErrorCode& /*error*/) override {
    head_.fields.push_back({std::string(name), std::string(value)});
  }
  void on_response_impl(int, Text, int, ErrorCode&) override {}
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, ErrorCode&) override {}
  size_t on_body_impl(Text body, ErrorCode&) override { return body.size(); }
  void on_chunk_header_impl(uint64_t, Text, ErrorCode&) override {}
  size_t on_chunk_body_impl(uint64_t, Text body, ErrorCode&) override { return body.size(); }
  void on_finish_impl(ErrorCode&) override {}

  HttpHead& head_;
};

std::string limit_of(size_t bytes) { return "the limit is " + std::to_string(bytes) + " bytes"; }

}  // namespace

HttpHead parse_http_head(std::string_view head) {
  HttpHead result;
  HeadParser parser(result);
  parser.header_limit(static_cast<std::uint32_t>(head.size()) + 1);
  parser.body_limit(boost::none);
  beast::error_code error;
  parser.put(boost::asio::const_buffer(head.data(), head.size()), error);
  if (error || !parser.is_header_done()) {
    throw HttpRefusal(400, "the header isn't well-formed: " + error.message());
  }
  return result;
}

size_t HttpHeadCheck::take(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && !is_whole()) take_byte(bytes[taken++]);
  return taken;
}

void HttpHeadCheck::take_byte(char c) {
  if (after_cr_) {
    if (c != '\n') throw HttpRefusal(400, "a carriage return without a line feed");
    after_cr_ = false;
    return end_line();
  }
  if (c == '\r') {
    after_cr_ = true;
    return;
  }
  if (c == '\n') throw HttpRefusal(400, "a line feed without a carriage return");
  if (is_control_character(c) && c != '\t')
    throw HttpRefusal(400, "a control character in the header");
  if (place_ == Place::fields) {
    take_field_byte(c);
  } else {
    take_request_line_byte(c);
  }
}

void HttpHeadCheck::take_request_line_byte(char c) {
  if (c == '\t' || static_cast<unsigned char>(c) >= 0x80) {
    throw HttpRefusal(400, "a character in the request line that must be percent-encoded");
  }
  if (c == ' ') {
    if (part_bytes_ == 0 || place_ == Place::version) {
      throw HttpRefusal(400,
                        "the request line must be: method, one space, target, one space, HTTP/1.1");
    }
    place_ = place_ == Place::method ? Place::target : Place::version;
    part_bytes_ = 0;
    return;
  }
  ++part_bytes_;
  if (place_ == Place::method && part_bytes_ > kMaxMethodBytes) {
    throw HttpRefusal(400, "the request's method is too long");
  }
  if (place_ == Place::target && part_bytes_ > limits_->max_uri_bytes) {
    throw HttpRefusal(414, "the request target is too long: " + limit_of(limits_->max_uri_bytes));
  }
  if (place_ == Place::version && part_bytes_ > kVersionBytes) {
    throw HttpRefusal(400, "the request line must end in HTTP/1.1");
  }
}

void HttpHeadCheck::take_field_byte(char c) {
  if (part_bytes_ == 0) {
    if (is_space(c)) throw HttpRefusal(400, "a header line that begins with a space");
    if (++num_fields_ > limits_->max_header_fields) {
      throw HttpRefusal(431, "too many header fields: the limit is " +
                                 std::to_string(limits_->max_header_fields));
    }
  }
  if (++part_bytes_ > limits_->max_header_line_bytes) {
    throw HttpRefusal(431,
                      "a header line is too long: " + limit_of(limits_->max_header_line_bytes));
  }
  if (++header_bytes_ > limits_->max_header_bytes) {
    throw HttpRefusal(431, "the header is too long: " + limit_of(limits_->max_header_bytes));
  }
}

void HttpHeadCheck::end_line() {
  if (place_ == Place::fields) {
    if (part_bytes_ == 0) {
      place_ = Place::end;
    } else {
      header_bytes_ += kLineEndBytes;
    }
  } else if (place_ == Place::method && part_bytes_ == 0 && !after_empty_line_) {
    after_empty_line_ = true;
  } else if (place_ == Place::version && part_bytes_ == kVersionBytes) {
    place_ = Place::fields;
  } else {
    throw HttpRefusal(400,
                      "the request line must be: method, one space, target, one space, HTTP/1.1");
  }
  part_bytes_ = 0;
}

}  // namespace paceline
