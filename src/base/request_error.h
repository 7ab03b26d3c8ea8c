// RequestError: a request that can't be answered as written, with the reason and the field at
// fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace paceline {

// Why a request isn't answered. What a client sees of it, its status and its codes, comes from one
// table for each API.
enum class ErrorReason : uint8_t {
  // The request is malformed, or asks for what doesn't exist here.
  invalid_value,
  missing_parameter,
  unknown_parameter,
  unsupported_parameter,
  context_length_exceeded,
  limit_exceeded,       // the constraint is larger than the limits of its compiler
  request_too_complex,  // another limit that the request alone exceeds
  model_not_found,      // no such model or adapter
  response_not_found,   // no stored response of the key, or item of one
  not_found,            // a file, or part of it, that an operation needs
  not_enabled,          // an option of the server would allow it
  feature_disabled,     // this model has no such ability
  invalid_method,       // of a line of a batch
  invalid_url,          // of a line of a batch
  // The HTTP request.
  invalid_api_key,
  host_not_allowed,
  unknown_url,
  method_not_allowed,
  slow_request,  // the client sends it too slowly
  body_too_large,
  uri_too_long,
  unsupported_media_type,
  headers_too_large,
  malformed_request,
  // The server's state; another attempt may succeed.
  queue_full,
  queue_timeout,
  too_many_connections,
  loading,
  model_load_failed,
  draining,
  overloaded,
  engine_unhealthy,
  resource_exhausted,
  // The request began and failed.
  request_timeout,
  cancelled,
  numerical_error,
  internal_error,
};

constexpr size_t kNumErrorReasons = static_cast<size_t>(ErrorReason::internal_error) + 1;

// Whether the table has one row for each reason, in the enum's order.
template <class Row, size_t kNumRows>
constexpr bool has_every_reason(const Row (&rows)[kNumRows]) {
  if (kNumRows != kNumErrorReasons) return false;
  for (size_t i = 0; i < kNumRows; ++i) {
    if (rows[i].reason != static_cast<ErrorReason>(i)) return false;
  }
  return true;
}

// The reason of an error that has none of its own.
ErrorReason reason_of(ErrorCode code);

class RequestError : public Error {
 public:
  // `field` is the path of the field at fault, such as "messages[1].content"; empty: none.
  RequestError(std::string field, ErrorReason reason, const std::string& message,
               ErrorCode code = ErrorCode::invalid)
      : Error(code, message), field_(std::move(field)), reason_(reason) {}

  const std::string& field() const { return field_; }
  ErrorReason reason() const { return reason_; }

 private:
  std::string field_;
  ErrorReason reason_;
};

// The usual error: "FIELD: WHAT", where `what` is what was found and what was expected.
RequestError invalid_field(std::string_view field, std::string_view what);
template <class Arg, class... Args>
RequestError invalid_field(std::string_view field, fmt::format_string<Arg, Args...> what, Arg&& arg,
                           Args&&... args) {
  return invalid_field(field,
                       fmt::format(what, std::forward<Arg>(arg), std::forward<Args>(args)...));
}

}  // namespace paceline
