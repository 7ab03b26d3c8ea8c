#include "server/request_fault.h"

namespace paceline {

ApiError fault_of_request(const Error& error) {
  ApiError found = api_error(error);
  if (found.code == "not_found") {
    found.status = 501;
    found.type = "not_supported_error";
    found.code = "feature_disabled";
  } else if (found.code == "resource_exhausted") {
    found.status = 400;
    found.type = "invalid_request_error";
    found.code = "request_too_complex";
  }
  return found;
}

}  // namespace paceline
