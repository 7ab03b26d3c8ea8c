// How long a request is and what becomes of its connection, as its header says.
#pragma once

#include <cstdint>

#include "http/head.h"

namespace paceline {

struct HttpFraming {
  uint64_t content_length = 0;
  bool is_chunked = false;
  bool keep_alive = true;
  bool expects_continue = false;

  bool has_body() const { return is_chunked || content_length > 0; }
};

// Throws HttpRefusal 400 where two readers could disagree about the length (RFC 9112, sections 3.2,
// 6.1 and 6.3: two lengths, two codings or both, a coding other than chunked, none or several Host
// in HTTP/1.1), 413 for a length over `max_body_bytes`.
HttpFraming read_http_framing(const HttpHead& head, uint64_t max_body_bytes);

}  // namespace paceline
