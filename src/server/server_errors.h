// Errors that answer a request: of the server's state, and of reading or preparing the request.
#pragma once

#include <string>

#include "base/error.h"
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

// For errors from before the request runs: what is too much is the request's own fault (400), since
// no other server could answer it.
inline ApiError fault_of_request(const Error& error) {
  ApiError found = api_error(error);
  if (found.reason == ErrorReason::resource_exhausted) {
    found.reason = ErrorReason::request_too_complex;
  }
  return found;
}

}  // namespace paceline
