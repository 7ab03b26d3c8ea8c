// Errors that are the server's own state, not the request's fault.
#pragma once

#include <string>
#include <string_view>

#include "protocol/api_error.h"

namespace paceline {

// 429: there is no room here now; `why` is the beginning of the message.
inline ApiError queue_full(const std::string& why = "the queue is full") {
  return {.status = 429,
          .message = why + "; try again later",
          .type = "rate_limit_error",
          .param = {},
          .code = "queue_full"};
}

// 503: a load balancer should try another server.
inline ApiError unavailable(std::string_view code, std::string message) {
  return {.status = 503,
          .message = std::move(message),
          .type = "server_error",
          .param = {},
          .code = std::string(code)};
}

// What an answer gets that the engine cancelled though its client is there.
inline ApiError ended_by_server() { return unavailable("draining", "the server is shutting down"); }

}  // namespace paceline
