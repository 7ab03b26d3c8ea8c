#include "server/http_head_check.h"

#include <string>

#include "server/http_field.h"
#include "server/http_refusal.h"

namespace paceline {
namespace {

constexpr size_t kMaxMethodBytes = 32;
constexpr size_t kVersionBytes = 8;  // "HTTP/1.1"
constexpr size_t kLineEndBytes = 2;

bool is_space(char c) { return c == ' ' || c == '\t'; }

std::string limit_of(size_t bytes) { return "the limit is " + std::to_string(bytes) + " bytes"; }

}  // namespace

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
                        "the request line must be: method, one space, target, one space, "
                        "HTTP/1.1");
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
