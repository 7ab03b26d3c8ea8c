// The head of an answer as it goes over the wire.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "server/http.h"

namespace paceline {

// How the client learns where the body ends.
enum class HttpBodyEnd { length, chunked, close };

struct HttpAnswerForm {
  HttpBodyEnd body_end = HttpBodyEnd::length;
  bool keep_alive = true;
  int version_minor = 1;  // of the request
};

// From the status line to the empty line. A header's value can't break out of its line: control
// characters become spaces.
std::string http_answer_head(const HttpResponse& response, const HttpAnswerForm& form,
                             std::string_view date);

// 204 and 304 have none, whatever the method.
bool http_status_has_body(int status);

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7).
std::string http_date(std::time_t time);

// Appends `piece`, which must not be empty, as a chunk.
void append_http_chunk(std::string& out, std::string_view piece);
constexpr std::string_view kHttpLastChunk = "0\r\n\r\n";

}  // namespace paceline
