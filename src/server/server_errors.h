// Errors caused by the server's state, not by the request.
#pragma once

#include <string>
#include <string_view>

#include "protocol/api_error.h"

namespace paceline {

// 429: the server is full; `why` begins the message.
inline ApiError queue_full(const std::string& why = "the queue is full") {
  return {.status = 429,
          .message = why + "; try again later",
          .type = "rate_limit_error",
          .param = {},
          .code = "queue_full"};
}

inline ApiError no_response_memory() {
  return queue_full("the memory for large responses is in use");
}

// 503: a load balancer should try another server.
inline ApiError unavailable(std::string_view code, std::string message) {
  return {.status = 503,
          .message = std::move(message),
          .type = "server_error",
          .param = {},
          .code = std::string(code)};
}

// For a request that the engine has cancelled although its client is connected.
inline ApiError ended_by_server() { return unavailable("draining", "the server is shutting down"); }

}  // namespace paceline
