// The request target of HTTP (RFC 9112, section 3.2) as a path and a query.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

struct HttpTarget {
  std::string path;            // percent-decoded; well-formed UTF-8 without control characters
  std::string query;           // as it came
  std::string authority = {};  // "host:port" of the absolute form; empty: the Host header says it
};

// "/path?query", "http://host/path?query" or "*". Throws HttpRefusal 400 for anything else, an
// ill-formed percent escape, and a path that decodes to what a path can't hold.
HttpTarget parse_http_target(std::string_view target);

// Throws HttpRefusal 400 for an ill-formed escape.
std::string percent_decoded(std::string_view text);

}  // namespace paceline
