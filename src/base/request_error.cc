#include "base/request_error.h"

#include <fmt/format.h>

namespace paceline {

ErrorReason reason_of(ErrorCode code) {
  using enum ErrorReason;
  switch (code) {
    case ErrorCode::invalid:
      return invalid_value;
    case ErrorCode::not_found:
      return not_found;
    case ErrorCode::unsupported:
      return feature_disabled;
    case ErrorCode::exhausted:
      return resource_exhausted;
    case ErrorCode::numerical:
      return numerical_error;
    case ErrorCode::cancelled:
      return cancelled;
    case ErrorCode::corrupt:
    case ErrorCode::internal:
      break;
  }
  return internal_error;
}

RequestError invalid_field(std::string_view field, std::string_view what) {
  return {std::string(field), ErrorReason::invalid_value, fmt::format("{}: {}", field, what)};
}

}  // namespace paceline
