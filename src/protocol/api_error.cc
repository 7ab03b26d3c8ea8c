#include "protocol/api_error.h"

#include "base/json_writer.h"

namespace paceline {

const ErrorKind& openai_kind(ErrorReason reason) {
  using enum ErrorReason;
  constexpr std::string_view kOfRequest = "invalid_request_error";
  constexpr std::string_view kOfServer = "server_error";
  // openai-python retries after 408, 409, 429 and everything from 500 on, so an invalid request is
  // never answered with one of these.
  static constexpr ErrorKind kKinds[] = {
      {invalid_value, 400, kOfRequest, "invalid_value"},
      {missing_parameter, 400, kOfRequest, "missing_required_parameter"},
      {unknown_parameter, 400, kOfRequest, "unknown_parameter"},
      {unsupported_parameter, 400, kOfRequest, "unsupported_parameter"},
      {context_length_exceeded, 400, kOfRequest, "context_length_exceeded"},
      {limit_exceeded, 400, kOfRequest, "limit_exceeded"},
      {request_too_complex, 400, kOfRequest, "request_too_complex"},
      {model_not_found, 404, kOfRequest, "model_not_found"},
      {response_not_found, 404, kOfRequest, "response_not_found"},
      {not_found, 404, kOfRequest, "not_found"},
      {not_enabled, 400, kOfRequest, "not_enabled"},
      {feature_disabled, 501, "not_supported_error", "feature_disabled"},
      {invalid_method, 400, kOfRequest, "invalid_method"},
      {invalid_url, 400, kOfRequest, "invalid_url"},
      {invalid_api_key, 401, kOfRequest, "invalid_api_key"},
      {host_not_allowed, 403, "permission_error", "host_not_allowed"},
      {unknown_url, 404, kOfRequest, "unknown_url"},
      {method_not_allowed, 405, kOfRequest, "method_not_allowed"},
      {slow_request, 408, kOfRequest, "request_timeout"},
      {body_too_large, 413, kOfRequest, "body_too_large"},
      {uri_too_long, 414, kOfRequest, "uri_too_long"},
      {unsupported_media_type, 415, kOfRequest, "unsupported_media_type"},
      {headers_too_large, 431, kOfRequest, "headers_too_large"},
      {malformed_request, 400, kOfRequest, "malformed_request"},
      {queue_full, 429, "rate_limit_error", "queue_full"},
      {queue_timeout, 503, kOfServer, "queue_timeout"},
      {too_many_connections, 503, kOfServer, "too_many_connections"},
      {loading, 503, kOfServer, "loading"},
      {model_load_failed, 503, kOfServer, "model_load_failed"},
      {draining, 503, kOfServer, "draining"},
      {overloaded, 503, kOfServer, "overloaded"},
      {engine_unhealthy, 503, kOfServer, "engine_unhealthy"},
      {resource_exhausted, 503, kOfServer, "resource_exhausted"},
      {request_timeout, 504, kOfServer, "request_timeout"},
      {cancelled, 499, kOfServer, "cancelled"},
      {numerical_error, 500, kOfServer, "numerical_error"},
      {internal_error, 500, kOfServer, "internal_error"},
  };
  static_assert(has_every_reason(kKinds));
  return kKinds[static_cast<size_t>(reason)];
}

ApiError api_error(const Error& error) {
  const auto* of_request = dynamic_cast<const RequestError*>(&error);
  if (of_request == nullptr) return {reason_of(error.code()), error.what()};
  ApiError found{of_request->reason(), error.what()};
  if (!of_request->field().empty()) found.field = of_request->field();
  return found;
}

ApiError api_error(const ErrorInfo& error) {
  ApiError found{reason_of(error.code), error.message};
  if (!error.field.empty()) found.field = error.field;
  return found;
}

std::string error_json(const ApiError& error) {
  const ErrorKind& kind = openai_kind(error.reason);
  return object_json([&](JsonWriter& writer) {
    writer.key("error").begin_object();
    writer.member("message", error.message).member("type", kind.type).member("param", error.field);
    writer.member("code", kind.code).end_object();
  });
}

}  // namespace paceline
