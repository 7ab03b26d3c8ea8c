// Errors caused by the server's state, not by the request.
#pragma once

#include <string>

#include "protocol/api_error.h"

namespace paceline {

// 429: the server is full; `why` begins the message.
inline ApiError queue_full(const std::string& why = "the queue is full") {
  return {ErrorReason::queue_full, why + "; try again later"};
}

inline ApiError no_response_memory() {
  return queue_full("the memory for large responses is in use");
}

inline ApiError memory_is_full() {
  return {ErrorReason::overloaded, "the server's memory limit is reached (--max-resident-memory)"};
}

// A later request tries to load it again.
inline ApiError model_not_loaded(const std::string& name, const std::string& problem) {
  return {ErrorReason::model_load_failed, "model " + name + ": couldn't be loaded: " + problem,
          "model"};
}

inline ApiError took_too_long() {
  return {ErrorReason::request_timeout, "the request took too long (--request-timeout)"};
}

// Also for a request that the engine has cancelled although its client is connected.
inline ApiError ended_by_server() { return {ErrorReason::draining, "the server is shutting down"}; }

}  // namespace paceline
