#include "server/request_fault.h"

namespace paceline {

ApiError fault_of_request(const Error& error) {
  ApiError found = api_error(error);
  if (error.code() == ErrorCode::not_found && found.code != "model_not_found") {
    found.status = 501;
    found.type = "not_supported_error";
    found.code = "feature_disabled";
  }
  if (error.code() != ErrorCode::exhausted) return found;
  found.status = 400;
  found.type = "invalid_request_error";
  const bool is_cache = found.message.find("--kv-cache-memory") != std::string::npos;
  found.code = is_cache ? "context_length_exceeded" : "request_too_complex";
  return found;
}

}  // namespace paceline
