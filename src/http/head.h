// The head of a request: checked byte by byte, then split into its parts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "http/http.h"

namespace paceline {

struct HttpHead {
  std::string method;
  std::string target;
  int version_minor = 1;           // of HTTP/1.x
  std::vector<HttpHeader> fields;  // one per line
};

// `head`: from the request line to the empty line, as HttpHeadCheck let it pass. Throws HttpRefusal
// 400.
HttpHead parse_http_head(std::string_view head);

// HttpHeadCheck enforces what a lenient parser skips (RFC 9112, sections 2.2, 3, 5.2): lines end in
// CRLF, no line continues the one before (obsolete folding), fields hold no control character but
// the tab, and sizes stay within their limits. It works byte by byte, so that the way the input is
// cut never matters.
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
