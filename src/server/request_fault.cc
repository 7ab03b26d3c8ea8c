#include "server/request_fault.h"

namespace paceline {

ApiError fault_of_request(const Error& error) {
  ApiError found = api_error(error);
  if (found.reason == ErrorReason::resource_exhausted) {
    found.reason = ErrorReason::request_too_complex;
  }
  return found;
}

}  // namespace paceline
