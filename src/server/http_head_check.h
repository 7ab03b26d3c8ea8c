// HttpHeadCheck holds the bytes of a request's head against the rules that a lenient parser skips.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/http.h"

namespace paceline {

// Lines end in CRLF and nothing else, no line is a continuation of the one before (obsolete
// folding), no byte is a control character but the tab in a field, and sizes stay in their limits
// (RFC 9112, sections 2.2, 3, 5.2). One byte after the other, so that it never matters how they
// are cut.
class HttpHeadCheck {
 public:
  explicit HttpHeadCheck(const HttpLimits& limits) : limits_(&limits) {}

  // How many of the bytes belong to the head. Throws HttpRefusal 400, 414 or 431.
  size_t take(std::string_view bytes);
  // The empty line has come.
  bool is_whole() const { return place_ == Place::end; }

 private:
  enum class Place { method, target, version, fields, end };

  void take_byte(char c);
  void take_request_line_byte(char c);
  void take_field_byte(char c);
  void end_line();

  const HttpLimits* limits_;
  Place place_ = Place::method;
  bool after_cr_ = false;
  bool after_empty_line_ = false;  // one before the request line is ignored
  size_t part_bytes_ = 0;          // of the method, target, version or field line
  size_t header_bytes_ = 0;
  size_t num_fields_ = 0;
};

}  // namespace paceline
