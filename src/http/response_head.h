// The status line and header of a response as bytes.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "http/http.h"

namespace paceline {

// How the client learns where the body ends.
enum class HttpBodyEnd { length, chunked, close };

struct HttpResponseFraming {
  HttpBodyEnd body_end = HttpBodyEnd::length;
  bool keep_alive = true;
  int version_minor = 1;  // of the request
};

// From the status line to the empty line. A header's value can't break out of its line: control
// characters become spaces.
std::string http_response_head(const HttpResponse& response, const HttpResponseFraming& form,
                               std::string_view date);

// 204 and 304 have none, whatever the method.
bool http_status_has_body(int status);

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7).
std::string http_date(std::time_t time);

// What stands before a chunk of this size, which is not 0.
std::string http_chunk_head(size_t num_bytes);
constexpr std::string_view kHttpChunkEnd = "\r\n";
constexpr std::string_view kHttpLastChunk = "0\r\n\r\n";

}  // namespace paceline
