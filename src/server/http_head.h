// The head of a request, split into its parts by Beast's parser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace paceline {

struct HttpHead {
  std::string method;
  std::string target;
  int version_minor = 1;           // of HTTP/1.x
  std::vector<HttpHeader> fields;  // one per line
};

// `head`: from the request line to the empty line, as HttpHeadCheck let it pass. Throws HttpRefusal
// 400. Defined in http_server.cc, beside all else that needs Boost.
HttpHead parse_http_head(std::string_view head);

}  // namespace paceline
